package traces_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/traces"
)

func ExampleList() {
	for _, info := range traces.List() {
		fmt.Printf("%-24s %5d requests, %4d windows (%d filled) in %s, %s\n",
			info.Name, info.Requests, info.Windows, info.Filled, info.Length, info.Licence)
	}
	// Output:
	// azure2023-conversation   19366 requests,    0 windows (0 filled) in 58m22s, CC-BY-4.0
	// mooncake-synthetic        3993 requests,    0 windows (0 filled) in 17m3s, Apache-2.0
	// servegen-m-large             0 requests, 2016 windows (0 filled) in 336h0m0s, Apache-2.0
	// servegen-m-small             0 requests, 2016 windows (37 filled) in 336h0m0s, Apache-2.0
}

// The third day of a fortnight, at a tenth of its rate.
func ExampleSlice() {
	series, err := traces.ServeGenLarge()
	if err != nil {
		panic(err)
	}
	day, err := traces.Slice(series, 48*time.Hour, 72*time.Hour)
	if err != nil {
		panic(err)
	}
	workload := sim.Scaled(day, 0.1)
	fmt.Println(workload.Duration(), len(day.Rates))
	// Output: 24h0m0s 144
}

func ExampleRead() {
	_, err := traces.Read(strings.NewReader("arrival_ms,input_tokens,output_tokens\n0,374,44\n4315,abc,109\n"), "trace.csv")
	fmt.Println(err)
	// Output: trace.csv:3: input_tokens "abc": must be a whole number of at least 1
}

// A log that is sorted by when requests ended, with one that failed.
func ExampleConvert() {
	log := `id,started,model,prompt_tokens,completion_tokens
7,2026-01-15T08:00:02.5Z,chat,900,3
5,2026-01-15T08:00:00.25Z,chat,374,44
6,2026-01-15T08:00:01Z,chat,396,0
`
	summary, err := traces.Convert(os.Stdout, strings.NewReader(log), "log.csv", traces.Columns{
		Time: "started", Input: "prompt_tokens", Output: "completion_tokens",
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("written:", summary.Written, "of", summary.Rows, "in", summary.Span)
	fmt.Println("skipped:", summary.Skipped)
	// Output:
	// arrival_ms,input_tokens,output_tokens
	// 0,374,44
	// 2250,900,3
	// written: 2 of 3 in 2.25s
	// skipped: [{4 no output tokens}]
}
