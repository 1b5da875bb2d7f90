package keda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
	"github.com/inferscale/inferscale/internal/vectors"
)

// A row of keda_external_client says what KEDA's client made of a server that did as it was told by the trigger's
// metadata. kedaAsks is that client and toldServer that server, both written down plainly; together they must come to
// what the row says. Then the server of this package is asked in the same way: the row is met if it comes to the same,
// or it is listed under the rule by which it must not, and the test asserts what it does instead.

// The rules.
const (
	ruleClient     = "the client's own: it fails before it asks a server"
	ruleCerts      = "TLS is that of package certs: see its tests"
	ruleUnmade     = "a trigger that cannot be made fails in every call"
	ruleOneSpec    = "a trigger has exactly one spec"
	ruleTarget     = "a target that KEDA would hand on as 0 is an error, not a target"
	ruleValue      = "a value that KEDA would read as 0, or that overflows, is Unavailable with the reason"
	ruleNoWait     = "a call never waits: before the first round has ended it is Unavailable"
	ruleOneValue   = "exactly one value is sent, under the name that was asked for"
	ruleOtherName  = "another name than the trigger's is InvalidArgument"
	ruleBothFields = "the whole number says what the float says, rounded up"
	ruleStreamOpen = "the stream stays open, and has the state to send"
	ruleChanges    = "only changes are sent: a repeated true puts off scaling to zero"

	ruleSeedAverage  = "the total goes out, not the average"
	ruleSeedTruncate = "values have fractions"
	ruleSeedCount    = "pods with a value are counted"
	ruleSeedFill     = "a missing pod moves nothing"
	ruleSeedPrefix   = "KEDA alone adds the prefix"
)

// A vectorSection meets a row (the rule is empty) or names the rule by which the answer differs.
type vectorSection func(t *testing.T, row json.RawMessage) (rule string)

func TestVectorsKEDA(t *testing.T) {
	sections := map[string]vectorSection{"keda_external_client": clientRow, "seed_external_scaler": seedRow}
	rows := 0
	for _, file := range vectors.Files(t) {
		var content map[string]json.RawMessage
		if file.IsLines() || json.Unmarshal(file.Data, &content) != nil {
			t.Logf("%s: of another schema", file.Name)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(content)) {
			var body struct {
				Cases []json.RawMessage `json:"cases"`
			}
			if json.Unmarshal(content[name], &body) != nil && json.Unmarshal(content[name], &body.Cases) != nil {
				require.Nil(t, sections[name], "%s: %s: must have cases", file.Name, name)
				continue // text about the file
			}
			if sections[name] == nil {
				t.Logf("%s: %s: %d rows skipped: not for this package", file.Name, name, len(body.Cases))
				continue
			}
			t.Run(file.Name+"/"+name, func(t *testing.T) { rows += vectorRows(t, sections[name], body.Cases) })
		}
	}
	vectors.Covered(t, rows)
}

func vectorRows(t *testing.T, section vectorSection, cases []json.RawMessage) int {
	t.Helper()
	met, listed := 0, make(map[string]int)
	for i, row := range cases {
		rule := ""
		ok := t.Run(strconv.Itoa(i), func(t *testing.T) {
			rule = section(t, row)
			if rule != "" {
				var line bytes.Buffer
				require.NoError(t, json.Compact(&line, row))
				t.Logf("listed: %s: %.200s", rule, line.String())
			}
		})
		switch {
		case !ok:
		case rule == "":
			met++
		default:
			listed[rule]++
		}
	}
	t.Logf("%d rows, %d met", len(cases), met)
	for _, rule := range slices.Sorted(maps.Keys(listed)) {
		t.Logf("%d listed: %s", listed[rule], rule)
	}
	return len(cases)
}

// strict reads a row of which every field is known.
func strict(t *testing.T, row json.RawMessage, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(row))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(into), "a row of an unknown form: %s", row)
}

// clientRow runs a row of keda_external_client.
func clientRow(t *testing.T, data json.RawMessage) string {
	t.Helper()
	var row kedaRow
	strict(t, data, &row)
	a := askingOf(t, row.Args)
	for what := range strings.SplitSeq(a.metadata["fail"], ",") {
		require.Contains(t, []string{"", "spec", "metrics", "active"}, what, "unknown form")
	}
	_, address := a.metadata["scalerAddress"]
	switch {
	case !address || (a.metricType != string(AverageValue) && a.metricType != string(Value)):
		require.NotEmpty(t, row.Out.NewError)
		return ruleClient
	case a.plain():
		require.Empty(t, row.Out.NewError)
	case strings.HasPrefix(a.metadata["scalerAddress"], "127.0.0.1:"):
		require.Contains(t, row.Out.ValueError, "connection refused")
		return ruleClient
	default:
		return ruleCerts
	}
	if a.push {
		return pushRow(t, row, a)
	}
	require.Equal(t, row.answer(), kedaAsks(t.Context(), toldServer{t: t, a: a}, a), "KEDA's client is another")
	for _, v := range row.Out.Values {
		milli := v.Value.MilliValue()
		if whole := v.Value.Value(); whole > math.MaxInt64/1000 {
			milli = whole * 1000 // it overflows
		}
		require.Equal(t, v.Milli, milli)
	}
	if rule := differs(t, row, a); rule != "" {
		return rule
	}
	o := ours(t, a)
	require.Equal(t, row.answer(), kedaAsks(t.Context(), o.server, a))
	require.Equal(t, a.metadata, o.metadata, "what the trigger is made of")
	return ""
}

// An ourServer is the server of this package with one trigger, which answers what the arguments mean.
type ourServer struct {
	*stage

	server   *Server
	trigger  *fakeTrigger
	metadata map[string]string // of which the trigger was made
	states   []bool            // of each round; the last one stays
}

func newOurs(t *testing.T, a asking, trigger func(o *ourServer, spec Spec) Trigger) *ourServer {
	t.Helper()
	spec := Spec{Metric: append(a.names(), "q")[0], Target: a.meant(t, "target")}
	if !(spec.Target >= leastTarget) {
		spec.Target = 1
	}
	o := &ourServer{}
	o.stage = newStage(t, func(c *EngineConfig) {
		c.Build = func(_ Ref, metadata map[string]string) (Plan, error) {
			if a.fails("spec") {
				return Plan{}, status.Error(codes.Unavailable, "dummy failure in spec")
			}
			o.metadata = metadata
			return Plan{Trigger: trigger(o, spec), Spec: spec, Interval: 15 * time.Second}, nil
		}
	})
	o.server = NewServer(o.engine)
	return o
}

// answers is a trigger that answers what the arguments mean.
func (a *asking) answers(t *testing.T) func(*ourServer, Spec) Trigger {
	t.Helper()
	value, active := a.meant(t, "value"), a.metadata["active"] != "false"
	return func(o *ourServer, spec Spec) Trigger {
		o.trigger = &fakeTrigger{answer: func(round int) (Snapshot, error) {
			s := Snapshot{Spec: spec, Value: value, Active: active}
			if len(o.states) > 0 {
				s.Active = o.states[min(round, len(o.states))-1]
			}
			if a.fails("metrics") {
				s.Unknown = errors.New("dummy failure in metrics")
			}
			if a.fails("active") {
				s.ActiveUnknown = errors.New("dummy failure in active")
			}
			return s, nil
		}}
		return o.trigger
	}
}

// ours returns our server after its first round.
func ours(t *testing.T, a asking) *ourServer {
	t.Helper()
	o := newOurs(t, a, a.answers(t))
	o.value(Ref{Namespace: "models", Name: "vectors"}, a.metadata)
	return o
}

// differs returns the rule by which our server must not do what the row's did, after it has seen what ours does instead.
func differs(t *testing.T, row kedaRow, a asking) string {
	t.Helper()
	ctx := t.Context()
	target, value := a.meant(t, "target"), a.meant(t, "value")
	sendable := value >= 0 && value <= greatestValue
	bare := strings.TrimPrefix(a.metric, fmt.Sprintf("s%d-", a.index))
	returned, returns := a.metadata["returnNames"]
	switch {
	case a.fails("spec"):
		o := newOurs(t, a, nil)
		got := kedaAsks(ctx, o.server, a)
		require.True(t, got.specsNil)
		require.Empty(t, got.values)
		if !strings.HasPrefix(got.err, "metric name ") { // else KEDA has no name to ask for
			require.Equal(t, "rpc error: code = Unavailable desc = dummy failure in spec", got.err)
		}
		return ruleUnmade
	case len(a.names()) != 1 && !(target > greatestValue):
		o := ours(t, a)
		spec, err := o.server.GetMetricSpec(ctx, a.object())
		require.NoError(t, err)
		require.Len(t, spec.GetMetricSpecs(), 1)
		for _, name := range append(a.names(), "q") {
			r, err := o.server.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: a.object(), MetricName: name})
			switch {
			case name != spec.GetMetricSpecs()[0].GetMetricName():
				require.Equal(t, codes.InvalidArgument, status.Code(err))
			case !sendable || a.fails("metrics"):
				require.Equal(t, codes.Unavailable, status.Code(err))
			default:
				require.NoError(t, err)
				require.Len(t, r.GetMetricValues(), 1)
			}
		}
		return ruleOneSpec
	case !(target >= leastTarget && target <= greatestValue):
		_, err := specResponse(Spec{Metric: "q", Target: target})
		require.Equal(t, codes.Internal, status.Code(err))
		if text := a.metadata["target"]; text != "" {
			_, err := ParseMetadata(inMetric("threshold", text))
			require.ErrorContains(t, err, "threshold: "+strconv.Quote(text)+": must be a number", "the user is told")
		}
		return ruleTarget
	case a.metric != "" && bare != a.metric && bare != a.names()[0]:
		o := ours(t, a)
		_, err := o.server.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: a.object(), MetricName: bare})
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.ErrorContains(t, err, fmt.Sprintf("metricName: %q: must be %q", bare, a.names()[0]))
		return ruleOtherName
	case a.fails("metrics") || strings.HasPrefix(row.Out.ValueError, "metric name "):
		return "" // no value is asked for, or there is none
	case !sendable:
		o := ours(t, a)
		got := kedaAsks(ctx, o.server, a)
		require.Equal(t, row.answer().specs, got.specs)
		require.Empty(t, got.values)
		require.Contains(t, got.err, "code = Unavailable")
		require.Contains(t, got.err, "must be between 0 and 1e+12 to be sent")
		if !a.fails("active") {
			active, err := o.server.IsActive(ctx, a.object())
			require.NoError(t, err)
			require.Equal(t, a.metadata["active"] != "false", active.GetResult())
		}
		return ruleValue
	case a.sleep(t) >= a.timeout:
		o := newOurs(t, a, func(*ourServer, Spec) Trigger { return sleeper{} })
		got := kedaAsks(ctx, o.server, a)
		require.Equal(t, row.answer().specs, got.specs)
		require.Empty(t, got.values)
		require.Contains(t, got.err, "code = Unavailable desc = cold start")
		return ruleNoWait
	case returns && returned != a.names()[0]:
		v := theValue(t, a)
		require.InDelta(t, value, v.GetMetricValueFloat(), 0)
		return ruleOneValue
	case value == 0 && a.number(t, "valueInt") > 0:
		v := theValue(t, a)
		require.Zero(t, v.GetMetricValueFloat())
		require.Zero(t, v.GetMetricValue())
		return ruleBothFields
	}
	if row.Out.ValueError == "" { // the whole number is for KEDA before 2.17
		v := theValue(t, a)
		require.InDelta(t, math.Ceil(v.GetMetricValueFloat()), v.GetMetricValue(), 0)
	}
	return ""
}

// theValue returns the one value that our server sends.
func theValue(t *testing.T, a asking) *externalscaler.MetricValue {
	t.Helper()
	name := a.names()[0]
	r, err := ours(t, a).server.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: a.object(), MetricName: name})
	require.NoError(t, err)
	require.Len(t, r.GetMetricValues(), 1)
	require.Equal(t, name, r.GetMetricValues()[0].GetMetricName())
	return r.GetMetricValues()[0]
}

// A sleeper is a Trigger whose rounds do not end by themselves.
type sleeper struct{}

func (sleeper) Round(ctx context.Context, _ time.Time) (Snapshot, error) {
	<-ctx.Done()
	return Snapshot{}, ctx.Err()
}

func (sleeper) Close() {}

// A fakeStream is the server's side of a stream.
type fakeStream[T any] struct {
	grpc.ServerStream

	ctx  context.Context //nolint:containedctx // that of the stream
	sent chan *T
}

func newFakeStream[T any](ctx context.Context) *fakeStream[T] {
	return &fakeStream[T]{ctx: ctx, sent: make(chan *T, 100)}
}

func (s *fakeStream[T]) Context() context.Context { return s.ctx }

func (s *fakeStream[T]) Send(m *T) error {
	s.sent <- m
	return nil
}

// next waits for a message.
func (s *fakeStream[T]) next(t *testing.T) *T {
	t.Helper()
	select {
	case m := <-s.sent:
		return m
	case <-time.After(patience):
		require.Fail(t, "nothing was sent")
		return nil
	}
}

// pushRow runs a row with streams: each state of the row's is that of one round of ours.
func pushRow(t *testing.T, row kedaRow, a asking) string {
	t.Helper()
	states := row.Out.Push
	stream, ok := a.metadata["stream"]
	if ok {
		states = nil
	}
	if ok && stream != "eof" && stream != "unimplemented" {
		for text := range strings.SplitSeq(stream, ",") {
			state, err := strconv.ParseBool(text)
			require.NoError(t, err, "unknown form: stream=%s", stream)
			states = append(states, state)
		}
	}
	require.Equal(t, states, row.Out.Push, "KEDA takes what is sent")
	require.Contains(t, []string{"", "once"}, a.metadata["streamSpec"], "unknown form")
	if a.metadata["streamSpec"] != "" && !(a.meant(t, "target") >= leastTarget) {
		return ruleTarget
	}

	ctx, cancel := context.WithCancel(t.Context())
	o := newOurs(t, a, a.answers(t))
	o.states = states
	spec, err := o.server.GetMetricSpec(ctx, a.object()) // the trigger begins
	require.NoError(t, err)
	active, specs := newFakeStream[externalscaler.IsActiveResponse](ctx), newFakeStream[externalscaler.GetMetricSpecResponse](ctx)
	done := make(chan error, 2)
	go func() { done <- o.server.StreamIsActive(a.object(), active) }()
	go func() { done <- o.server.StreamMetricSpec(a.object(), specs) }()
	want := slices.Compact(append([]bool{}, states...))
	var got []bool
	for i := range max(len(states), 3) {
		if i > 0 {
			o.tick()
		}
		if i == 0 || (i < len(states) && states[i] != states[i-1]) {
			got = append(got, active.next(t).GetResult())
		}
	}
	require.Equal(t, spec.String(), specs.next(t).String())
	require.Empty(t, done, "both streams are open")
	cancel()
	for range 2 {
		require.Equal(t, codes.Canceled, status.Code(<-done))
	}
	require.Empty(t, specs.sent, "the spec is sent once")
	require.Empty(t, active.sent)
	if len(states) == 0 {
		require.Equal(t, []bool{true}, got)
		return ruleStreamOpen
	}
	require.Equal(t, want, got)
	if a.metadata["streamSpec"] != "" {
		require.Equal(t, 1, row.Out.PushSpecs)
		require.Equal(t, row.answer().specs, kedaAsks(t.Context(), o.server, a).specs)
	}
	if len(want) != len(states) {
		return ruleChanges
	}
	return ""
}

// seedRow runs a row of seed_external_scaler, each of which is a fault of the seed's scaler.
func seedRow(t *testing.T, data json.RawMessage) string {
	t.Helper()
	var row struct {
		What           string   `json:"what"`
		Kind           string   `json:"kind"`
		Result         string   `json:"result"`
		Replicas       int32    `json:"replicas"`
		PerPod         []any    `json:"perPod"`
		Pods           []any    `json:"pods"`
		Threshold      float64  `json:"threshold"`
		SeedValue      *float64 `json:"seedValue"`
		HPAUsageRatio  float64  `json:"hpaUsageRatio"`
		HPADesired     int32    `json:"hpaDesired"`
		CorrectDesired int32    `json:"correctDesired"`
		Avg            float64  `json:"avg"`
		Ready          int32    `json:"ready"`
		Unready        int32    `json:"unready"`
		Total          float64  `json:"total"`
		SeedAvg        float64  `json:"seedAvg"`
		TrueAvg        float64  `json:"trueAvg"`
		UpTrigger      float64  `json:"upTrigger"`
		Name           string   `json:"name"`
	}
	strict(t, data, &row)
	switch {
	case len(row.PerPod) > 0:
		f := fleetOf(row.Threshold, row.PerPod)
		f.spec, f.status, f.tolerance = row.Replicas, row.Replicas, 0.1
		require.Equal(t, row.HPADesired, f.wants(AverageValue, row.Threshold, *row.SeedValue), "the seed's")
		value, err := f.value()
		require.NoError(t, err)
		require.Equal(t, row.CorrectDesired, f.wants(AverageValue, row.Threshold, value))
		return ruleSeedAverage
	case len(row.Pods) > 0:
		f := fleetOf(row.Threshold, row.Pods)
		require.Greater(t, row.SeedAvg, row.UpTrigger, "the seed's")
		f.tolerance = row.UpTrigger/row.Threshold - 1
		value, err := f.value()
		require.NoError(t, err)
		require.LessOrEqual(t, f.wants(AverageValue, row.Threshold, value), f.spec)
		return ruleSeedFill
	case row.Avg > 0:
		require.InDelta(t, math.Trunc(row.Avg), *row.SeedValue, 0, "the seed's")
		a := askingOf(t, fmt.Sprintf("-m scalerAddress=$PL -m target=1 -m value=%v", row.Avg))
		require.InDelta(t, row.Avg, theValue(t, a).GetMetricValueFloat(), 0)
		return ruleSeedTruncate
	case row.Ready > 0:
		f := fleetOf(10, nil)
		for range row.Ready {
			f.values = append(f.values, row.Total/float64(row.Ready))
		}
		f.notReady = row.Unready
		r := f.reading()
		n := float64(r.Values + r.NotReady + r.Failed)
		require.InDelta(t, row.TrueAvg, n*r.Lower/float64(r.Values), 1e-9)
		require.InDelta(t, row.SeedAvg, row.Total/float64(row.Ready-row.Unready), 1e-9, "the seed's")
		f.spec = row.Ready // those that are not ready are beyond it
		value, err := f.value()
		require.NoError(t, err)
		require.InDelta(t, max(row.Total, 10*float64(row.Ready)), value, 1e-9)
		return ruleSeedCount
	case row.Name != "":
		_, bare, _ := strings.Cut(row.Name, "-")
		_, bare, _ = strings.Cut(bare, "-")
		a := askingOf(t, "-m scalerAddress=$PL -m target=1 -m value=2 -m names="+bare)
		require.Equal(t, []string{"s0-" + bare + " AverageValue 1"}, kedaAsks(t.Context(), ours(t, a).server, a).specs)
		return ruleSeedPrefix
	case strings.Contains(row.Result, "tls:"):
		return ruleCerts
	}
	require.Fail(t, "a row of an unknown form", "%s", data)
	return ""
}

// fleetOf makes a fleet of values and of pods without one.
func fleetOf(threshold float64, pods []any) *fleet {
	f := &fleet{kind: AverageValue, threshold: threshold, hpa: hpa{spec: int32(len(pods)), status: int32(len(pods))}}
	for _, pod := range pods {
		if v, ok := pod.(float64); ok {
			f.values = append(f.values, v)
		} else {
			f.failed++
		}
	}
	return f
}

// TestVectorRowSpecFailsAndNameIsWrong has a row that no file here has: KEDA refuses the name before it asks.
func TestVectorRowSpecFailsAndNameIsWrong(t *testing.T) {
	row := `{"case": "", "args": "-index 1 -metric s0-q -m scalerAddress=$PL -m fail=spec -m value=2", "out": {"specs": [],
		"specsNil": true, "values": null, "active": false, "valueError": "metric name contains incorrect index prefix"}}`
	require.Equal(t, ruleUnmade, clientRow(t, json.RawMessage(row)))
}
