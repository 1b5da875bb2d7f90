// Quickstart runs the whole job of an autoscaler on one machine: scrape, decide, explain.
//
//	go run ./examples/quickstart
//
// starts a small fleet of simulated vLLM servers on 127.0.0.1, sends them an hour of real traffic (the Azure 2023
// conversation trace) in less than a minute, scrapes their /metrics pages over HTTP, and scales them with the recommended
// policy, package capacity, over a cron floor. Nothing has to be set up. With -slow 2 the servers become slower by half in the
// middle of it.
//
//	go run ./examples/quickstart -targets http://127.0.0.1:8000/metrics -metric vllm:num_requests_waiting -high 10 -low 2
//
// scrapes real endpoints instead and prints what it would decide. With -config both follow a policy document, such as an
// LLMAutoScaler.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/examples/internal/cli"
)

const usage = `Quickstart shows inferscale at work.

  quickstart                      an hour of real traffic on simulated servers, in less than a minute
  quickstart -targets URL,...     scrape these endpoints and print what would be decided

Flags:
`

// Exit codes.
const (
	exitOK    = 0
	exitFail  = 1 // no target ever answered, the demonstration could not run, or the output could not be written
	exitUsage = 2 // the command line is wrong
)

func main() { cli.Main(run) }

// options is the command line.
type options struct {
	json bool
	pace time.Duration
	slow float64

	config   string
	targets  string
	metric   string
	high     float64
	low      float64
	min, max int
	interval time.Duration
	timeout  time.Duration
	once     bool
}

// run is main with its surroundings as arguments. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stderr = cli.Plain(stderr)
	o, err := parse(args, stdout, stderr)
	if err != nil {
		return cli.Code(err)
	}
	out := &writer{w: stdout}
	if o.targets == "" {
		err = demo(ctx, o, out, stderr)
	} else {
		err = watch(ctx, o, out, stderr)
	}
	if err == nil {
		err = out.err
	}
	var wrong *usageError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "quickstart: %v\n\nquickstart -help shows the flags.\n", err)
		return exitUsage
	case err != nil:
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return exitFail
	}
	return exitOK
}

// A writer remembers the first error, which package fmt's callers here do not look at.
type writer struct {
	w   io.Writer
	err error
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// A usageError is a command line that cannot be followed.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func parse(args []string, stdout, stderr io.Writer) (options, error) {
	var o options
	flags := cli.Flags("quickstart", usage)
	flags.BoolVar(&o.json, "json", false, "print one JSON object per decision")
	flags.DurationVar(&o.pace, "pace", 80*time.Millisecond, "real time of the demonstration for 15 s of traffic")
	flags.Float64Var(&o.slow, "slow", 1, "factor by which the servers become slower in the middle of the demonstration")
	flags.StringVar(&o.config, "config", "", "policy document or LLMAutoScaler manifest to decide with")
	flags.StringVar(&o.targets, "targets", "", "comma-separated URLs to scrape instead of the demonstration, like http://host:port/metrics")
	flags.StringVar(&o.metric, "metric", "vllm:num_requests_waiting", "metric to read from the targets")
	flags.Float64Var(&o.high, "high", 0, "threshold above which to scale up; without -high the targets are only read")
	flags.Float64Var(&o.low, "low", 0, "threshold below which to scale down")
	flags.IntVar(&o.min, "min", 1, "fewest replicas")
	flags.IntVar(&o.max, "max", 0, "most replicas (default twice the number of targets, or -min if that is more)")
	flags.DurationVar(&o.interval, "interval", 15*time.Second, "time between two scrapes of the targets")
	flags.DurationVar(&o.timeout, "timeout", 0, "time limit for one target (default 3s, at most half the interval)")
	flags.BoolVar(&o.once, "once", false, "scrape the targets once and exit")
	if err := cli.Parse(flags, args, stdout, stderr); err != nil {
		return o, err
	}
	err := o.check(flags)
	if err != nil {
		fmt.Fprintf(stderr, "quickstart: %v\n\nquickstart -help shows the flags.\n", err)
	}
	return o, err
}

// check refuses flags that would be ignored silently.
func (o *options) check(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: URLs belong behind -targets, separated by commas", flags.Arg(0))
	}
	var err error
	high := false
	flags.Visit(func(f *flag.Flag) { // in the order of their names: -high before -low, -max and -min
		isDemo := f.Name == "pace" || f.Name == "slow"
		high = high || f.Name == "high"
		if f.Value.String() == "" && err == nil {
			err = fmt.Errorf("-%s \"\": must not be empty", f.Name)
		}
		if o.config != "" && slices.Contains([]string{"metric", "high", "low"}, f.Name) && err == nil {
			err = fmt.Errorf("-%s does not go with -config, which says it", f.Name)
		}
		if f.Name != "json" && f.Name != "config" && isDemo == (o.targets != "") && err == nil {
			goes := "goes only"
			if isDemo {
				goes = "does not go"
			}
			err = fmt.Errorf("-%s %s with -targets", f.Name, goes)
		}
		if f.Name == "low" && !high && err == nil {
			err = fmt.Errorf("-low goes with -high: without it nothing is decided")
		}
		if (f.Name == "max" || f.Name == "min") && !high && o.config == "" && err == nil {
			err = fmt.Errorf("-%s goes with -high or -config: without them nothing is decided", f.Name)
		}
	})
	switch {
	case err != nil:
		return err
	case o.pace < 0:
		return fmt.Errorf("-pace %s: must not be negative", o.pace)
	case !(o.slow >= 1 && o.slow <= mostSlow):
		return fmt.Errorf("-slow %v: must be from 1 to %v", o.slow, mostSlow)
	case high && o.high == 0:
		return errors.New("-high 0: must be above 0; without -high the targets are only read")
	case o.min < 0:
		return fmt.Errorf("-min %d: must not be negative", o.min)
	case o.max < 0:
		return fmt.Errorf("-max %d: must not be negative", o.max)
	case o.max > 0 && o.max < o.min:
		return fmt.Errorf("-max %d: must not be below -min, %d", o.max, o.min)
	case !(o.low >= 0) || math.IsInf(o.low, 0):
		return fmt.Errorf("-low %v: must be a number that is not negative", o.low)
	case high && (!(o.high > o.low) || math.IsInf(o.high, 0)):
		return fmt.Errorf("-high %v: must be a number above -low, %v", o.high, o.low)
	case o.interval < time.Millisecond:
		return fmt.Errorf("-interval %s: must be at least 1ms", o.interval)
	case o.timeout < 0 || o.timeout >= o.interval:
		return fmt.Errorf("-timeout %s: must be positive and below -interval, %s", o.timeout, o.interval)
	}
	return nil
}
