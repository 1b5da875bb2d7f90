package k8s_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// cut is an observer during whose observation the process is told to end.
type cut struct {
	end func()
}

func (c *cut) Observe(ctx context.Context, _ []k8s.Scale) (k8s.Observed, error) {
	c.end()
	return k8s.Observed{}, ctx.Err()
}

// TestRegressionARoundThatIsEndedTellsOfNoFailure: a process that was told to end warned of each round that it had begun, in events, log
// and metrics: NotObserved, context canceled, of targets that were well, whenever a controller was replaced.
func TestRegressionARoundThatIsEndedTellsOfNoFailure(t *testing.T) {
	var log bytes.Buffer
	events, metrics := record.NewFakeRecorder(10), k8s.NewMetrics()
	tell := func(config *k8s.LoopConfig) {
		config.Recorder, config.Metrics, config.Logger = events, metrics, slog.New(slog.NewTextHandler(&log, nil))
	}
	ctx, end := context.WithCancel(t.Context())
	l := newLoop(t, newCluster(3), &cut{end: end}, &clock{now: start}, tell)
	o, err := l.Tick(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, o.ObserveErr, context.Canceled, "who asked for the round is told")
	require.Empty(t, events.Events)
	require.Empty(t, log.String())
	require.Zero(t, testutil.CollectAndCount(metrics))

	// What was written before the end is told.
	c := newCluster(0)
	ctx, end = context.WithCancel(t.Context())
	c.BeforeWrite(end, nil)
	_, _ = newLoop(t, c, nil, &clock{now: start}, func(config *k8s.LoopConfig) { tell(config); config.Observer = nil }).Tick(ctx)
	require.EqualValues(t, 1, c.Replicas("llama"))
	require.Contains(t, <-events.Events, "Normal ScaledUp ")
	require.Contains(t, log.String(), "write=written")
}
