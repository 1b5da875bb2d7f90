// Kedascaler is an external scaler for KEDA. See README.md, and kedascaler -help.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	_ "time/tzdata" // schedules have time zones, and images may have none

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/examples/internal/command"
)

func main() { cli.Main(run) }

// run does what the command line says until ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout, stderr)
	switch {
	case err != nil:
		return cli.Code(err)
	case o.Version:
		fmt.Fprintf(stdout, "kedascaler %s\n", command.Version())
		return 0
	}
	if o.query != "" {
		if err := o.ask(ctx, cli.Plain(stdout)); err != nil {
			fmt.Fprintf(cli.Plain(stderr), "kedascaler: %v\n", err)
			return 1
		}
		return 0
	}
	logger := o.logger(stderr)
	command.Log(logger.Handler())
	work := o.cluster
	if o.laptop() {
		work = o.alone
	}
	if err := work(ctx, logger); err != nil {
		logger.Error("ended", "error", err)
		return 1
	}
	return 0
}

// logger writes text on a laptop and JSON in a cluster.
func (o *options) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: o.Level()}
	if o.laptop() {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(command.Calm(slog.NewJSONHandler(w, options)))
}
