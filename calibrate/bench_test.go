package calibrate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
)

// BenchmarkFit is a week of 20 pods, scraped every 15 s: 806,400 points.
func BenchmarkFit(b *testing.B) {
	points := lawful(law(), 20, 7*24*240, 1)
	b.ReportAllocs()
	for b.Loop() {
		_, err := calibrate.Fit(points, calibrate.Options{})
		require.NoError(b, err)
	}
}
