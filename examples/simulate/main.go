// Simulate replays traffic against every scaling algorithm in a simulated fleet of LLM servers, and says what each of
// them would have cost and served.
//
//	go run ./examples/simulate
//
// replays an hour of real conversations (Azure, 2023), prints a table and writes simulate-report.html with pictures.
//
//	go run ./examples/simulate -convert access-log.csv -columns time,prompt_tokens,completion_tokens -o mine.csv
//	go run ./examples/simulate -trace mine.csv
//
// does so with traffic of one's own, and
//
//	go run ./examples/simulate -prometheus http://localhost:9090 -model my-model -range 7d
//
// with what a fleet did by its Prometheus: its traffic, its servers and its replicas.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/inferscale/inferscale/examples/internal/cli"
)

// Exit codes.
const (
	exitOK    = 0
	exitFail  = 1 // a run failed, the simulator does not meet the published figures, or -lint found something
	exitUsage = 2 // the command line is wrong, or a file to be read that it names
	// exitRefused: the history is not sufficient for a verdict; the message says why.
	exitRefused = 3
)

func main() {
	cli.Main(func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return patient(ctx, 5*time.Second, stderr, func() int { return run(ctx, args, stdout, stderr) })
	})
}

// patient returns the code that work returns or, if the context ends and work goes on for longer than patience, that of a failure:
// work may wait for a file that nobody writes, as a pipe.
func patient(ctx context.Context, patience time.Duration, stderr io.Writer, work func() int) int {
	done := make(chan int, 1)
	go func() { done <- work() }()
	select {
	case code := <-done:
		return code
	case <-ctx.Done():
	}
	select {
	case code := <-done:
		return code
	case <-time.After(patience):
		fmt.Fprint(stderr, "simulate: stopped\n")
		return exitFail
	}
}

// run is main with its surroundings as arguments. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stderr = cli.Plain(stderr)
	o, err := parse(args, stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		err = o.do(ctx, stdout, stderr)
	}
	var wrong *usageError
	var no *refusedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "simulate: %v\n\nsimulate -help shows the flags.\n", err)
		return exitUsage
	case errors.As(err, &no):
		fmt.Fprintf(stderr, "simulate: no verdict: %v\n", err)
		return exitRefused
	case errors.Is(err, context.Canceled):
		fmt.Fprint(stderr, "simulate: stopped\n")
		return exitFail
	default:
		fmt.Fprintf(stderr, "simulate: %v\n", err)
		return exitFail
	}
}

// do does what the command line asks for.
func (o *options) do(ctx context.Context, stdout, stderr io.Writer) error {
	switch {
	case o.suite:
		return o.runSuite(ctx, stdout, stderr)
	case o.roofline != "":
		return o.computeRoofline(stdout, stderr)
	case o.calibrate != "":
		return o.calibrateRuns(stdout, stderr)
	case o.lint != "":
		return o.lintFile(stdout)
	case o.list:
		return list(stdout)
	case o.sample:
		return sample(stdout)
	case o.convert != "" && o.columns == "":
		return o.convertPolicies(stdout)
	case o.convert != "":
		return o.convertLog(stdout, stderr)
	default:
		return o.simulate(ctx, stdout, stderr)
	}
}

// A usageError is a command line that cannot be followed.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func misuse(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }
