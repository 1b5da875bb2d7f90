package traces_test

import (
	"testing"

	"github.com/inferscale/inferscale/sim/traces"
)

func BenchmarkAzure2023Conversation(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := traces.Azure2023Conversation(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkServeGenSmall(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := traces.ServeGenSmall(); err != nil {
			b.Fatal(err)
		}
	}
}
