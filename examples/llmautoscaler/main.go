// Llmautoscaler is a controller for LLMAutoScaler objects. See README.md, and llmautoscaler -help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // schedules have time zones, and images may have none

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run does what the command line says until ctx ends, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case o.version:
		fmt.Fprintf(stdout, "llmautoscaler %s\n", version())
		return 0
	}
	level, err := o.slogLevel()
	if err != nil {
		return 2
	}
	logger := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(logr.FromSlogHandler(logger.Handler()))
	klog.SetSlogLogger(logger)
	logger.Info("starting", "version", version())
	if err := work(ctx, o, logger); err != nil {
		logger.Error("ended", "error", err)
		return 1
	}
	logger.Info("ended")
	return 0
}

func work(ctx context.Context, o options, logger *slog.Logger) error {
	config, err := o.config()
	if err != nil {
		return err
	}
	if o.credentials == "" {
		dir, err := os.MkdirTemp("", "llmautoscaler-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.credentials = dir
	}
	manager, end, err := o.manager(ctx, config, logger)
	if err != nil {
		return err
	}
	defer end()
	return manager.Start(ctx)
}

// config returns how to reach the API server.
func (o *options) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("how to reach the API server: %w", err)
	}
	config.QPS, config.Burst = float32(o.qps), o.burst
	config.UserAgent = "llmautoscaler/" + version()
	return config, nil
}

// version is that of the module, or of the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "devel"
}
