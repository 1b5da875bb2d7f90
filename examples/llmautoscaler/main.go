// Llmautoscaler is a controller for LLMAutoScaler objects. See README.md, and llmautoscaler -help.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
		fmt.Fprintf(stdout, "llmautoscaler %s\n", command.Version())
		return 0
	}
	logger := slog.New(command.Calm(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: o.Level()})))
	command.Log(logger.Handler())
	logger.Info("starting", "version", command.Version())
	if err := work(ctx, o, logger); err != nil {
		logger.Error("ended", "error", err)
		return 1
	}
	logger.Info("ended")
	return 0
}

func work(ctx context.Context, o options, logger *slog.Logger) error {
	config, err := command.Config("llmautoscaler", o.Kubeconfig, o.QPS, o.Burst)
	if err != nil {
		return err
	}
	if o.credentials, err = credentialsIn(o.credentials); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(o.credentials) }()
	manager, end, err := o.manager(ctx, config, logger)
	if err != nil {
		return command.Starting(ctx, err)
	}
	defer end()
	return manager.Start(ctx)
}

// credentialsIn returns a new directory within the one of the command line, and removes from that what processes before this one
// left that were killed: a volume outlives its container. Without one it is a temporary directory, which other processes use too.
func credentialsIn(parent string) (string, error) {
	const prefix = "llmautoscaler-"
	if parent != "" {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return "", fmt.Errorf("-credentials-dir: %w", err)
		}
		all, err := os.ReadDir(parent)
		if err != nil {
			return "", fmt.Errorf("-credentials-dir: %w", err)
		}
		for _, old := range all {
			if strings.HasPrefix(old.Name(), prefix) {
				if err := os.RemoveAll(filepath.Join(parent, old.Name())); err != nil {
					return "", fmt.Errorf("-credentials-dir: %w", err)
				}
			}
		}
	}
	return os.MkdirTemp(parent, prefix)
}
