package keda

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	grpcmetadata "google.golang.org/grpc/metadata"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
	"github.com/inferscale/inferscale/scaling"
)

func scaledObject(ref Ref, metadata map[string]string) *externalscaler.ScaledObjectRef {
	return &externalscaler.ScaledObjectRef{Namespace: ref.Namespace, Name: ref.Name, ScalerMetadata: metadata}
}

func asked(ref Ref, metadata map[string]string, metric string) *externalscaler.GetMetricsRequest {
	return &externalscaler.GetMetricsRequest{ScaledObjectRef: scaledObject(ref, metadata), MetricName: metric}
}

// serve serves an engine on the loopback and returns a connection to it.
func serve(t *testing.T, c GRPCConfig) *grpc.ClientConn {
	t.Helper()
	server, _, err := NewGRPC(c)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-done)
	})
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestCalls(t *testing.T) {
	s := newStage(t, nil)
	metadata := s.add("a", &fakeTrigger{answer: func(int) (Snapshot, error) {
		return Snapshot{Value: 3.25, Spec: Spec{Metric: "vllm:num_requests_waiting", Target: 10.5}, Active: true}, nil
	}})
	s.value(chat, metadata)
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: s.engine}))
	ctx := t.Context()

	spec, err := client.GetMetricSpec(ctx, scaledObject(chat, metadata))
	require.NoError(t, err)
	require.Len(t, spec.GetMetricSpecs(), 1)
	one := spec.GetMetricSpecs()[0]
	require.Equal(t, "vllm:num_requests_waiting", one.GetMetricName())
	require.InDelta(t, 10.5, one.GetTargetSizeFloat(), 0)
	require.EqualValues(t, 11, one.GetTargetSize(), "for KEDA before 2.17, rounded up")

	got, err := client.GetMetrics(ctx, asked(chat, metadata, "vllm:num_requests_waiting"))
	require.NoError(t, err)
	require.Len(t, got.GetMetricValues(), 1)
	value := got.GetMetricValues()[0]
	require.Equal(t, "vllm:num_requests_waiting", value.GetMetricName())
	require.InDelta(t, 3.25, value.GetMetricValueFloat(), 0)
	require.EqualValues(t, 4, value.GetMetricValue())

	active, err := client.IsActive(ctx, scaledObject(chat, metadata))
	require.NoError(t, err)
	require.True(t, active.GetResult())

	for _, name := range []string{"", "q", "s0-vllm:num_requests_waiting"} {
		_, err = client.GetMetrics(ctx, asked(chat, metadata, name))
		require.Equal(t, codes.InvalidArgument, code(err), name)
		require.ErrorContains(t, err, `must be "vllm:num_requests_waiting", the one metric of this trigger`)
	}
	for _, ref := range []Ref{{}, {Name: "chat"}, {Namespace: "models"}} {
		_, err = client.IsActive(ctx, scaledObject(ref, metadata))
		require.Equal(t, codes.InvalidArgument, code(err))
		_, err = client.GetMetrics(ctx, asked(ref, metadata, "q"))
		require.Equal(t, codes.InvalidArgument, code(err))
		_, err = client.GetMetricSpec(ctx, scaledObject(ref, metadata))
		require.Equal(t, codes.InvalidArgument, code(err))
	}
	_, err = client.GetMetrics(ctx, &externalscaler.GetMetricsRequest{MetricName: "q"})
	require.Equal(t, codes.InvalidArgument, code(err), "no ref at all")
}

// TestNoNumberThatIsNone: KEDA reads NaN, infinite and negative values as 0, so they do not leave.
func TestNoNumberThatIsNone(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, -1e-300, 1e12 + 1, 1e18} {
		s := newStage(t, nil)
		metadata := s.add("a", &fakeTrigger{answer: func(int) (Snapshot, error) { return Snapshot{Value: v, Active: true}, nil }})
		s.value(chat, metadata)
		server := NewServer(s.engine)
		_, err := server.GetMetrics(t.Context(), asked(chat, metadata, "q"))
		require.Equal(t, codes.Unavailable, code(err), "%v", v)
		active, err := server.IsActive(t.Context(), scaledObject(chat, metadata))
		require.NoError(t, err, "IsActive does not fail for it")
		require.True(t, active.GetResult())
	}
	for _, target := range []float64{math.NaN(), 0, 0.0009, -1, math.Inf(1), 1e13} {
		_, err := specResponse(Spec{Metric: "q", Target: target})
		require.Equal(t, codes.Internal, code(err), "%v", target)
	}
}

func TestUnknownIsUnavailable(t *testing.T) {
	s := newStage(t, nil)
	metadata := s.add("a", &fakeTrigger{answer: func(int) (Snapshot, error) {
		return Snapshot{Unknown: errors.New("q: 2 of 2 pods did not answer"), Active: true}, nil
	}})
	both := s.add("b", &fakeTrigger{answer: func(int) (Snapshot, error) {
		return Snapshot{Unknown: errors.New("no ScaledObject"), ActiveUnknown: errors.New("no ScaledObject")}, nil
	}})
	s.value(chat, metadata)
	s.value(chat, both)
	server := NewServer(s.engine)
	_, err := server.GetMetrics(t.Context(), asked(chat, metadata, "q"))
	require.Equal(t, codes.Unavailable, code(err))
	require.ErrorContains(t, err, "q: 2 of 2 pods did not answer")
	active, err := server.IsActive(t.Context(), scaledObject(chat, metadata))
	require.NoError(t, err)
	require.True(t, active.GetResult())
	_, err = server.IsActive(t.Context(), scaledObject(chat, both))
	require.Equal(t, codes.Unavailable, code(err))
}

// TestStreamIsActiveSendsTransitions: what repeats itself, and what is not known, is not sent.
func TestStreamIsActiveSendsTransitions(t *testing.T) {
	s := newStage(t, func(c *EngineConfig) { c.Stale = 100 })
	play := []string{"?", "on", "on", "error", "on", "off", "off", "?", "off", "on"}
	metadata := s.add("a", &fakeTrigger{answer: func(round int) (Snapshot, error) {
		switch play[min(round, len(play))-1] {
		case "?":
			return Snapshot{ActiveUnknown: errors.New("not known")}, nil
		case "error":
			return Snapshot{}, errors.New("nothing came of it")
		case "on":
			return Snapshot{Active: true}, nil
		}
		return Snapshot{}, nil
	}})
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: s.engine}))
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client.StreamIsActive(ctx, scaledObject(chat, metadata))
	require.NoError(t, err)
	s.value(chat, metadata)
	s.streaming(metadata, 1)
	sent := make(chan bool, len(play))
	go func() {
		defer close(sent)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			sent <- m.GetResult()
		}
	}()
	var got []bool
	for i, round := range play {
		if i > 0 {
			s.tick()
		}
		if round == "on" || round == "off" {
			if now := round == "on"; len(got) == 0 || got[len(got)-1] != now {
				got = append(got, <-sent)
				require.Equal(t, now, got[len(got)-1], "round %d", i+1)
			}
		}
	}
	cancel()
	for extra := range sent {
		t.Errorf("%v was sent once more", extra)
	}
	require.Equal(t, []bool{true, false, true}, got)
	s.streaming(metadata, 0)
}

// streaming waits until so many streams of a trigger are open.
func (s *stage) streaming(metadata map[string]string, n int32) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		s.engine.mu.RLock()
		defer s.engine.mu.RUnlock()
		e := s.engine.triggers[key(chat, metadata)]
		return e != nil && e.streams.Load() == n
	}, patience, time.Millisecond)
}

func TestStreamMetricSpec(t *testing.T) {
	s := newStage(t, nil)
	target := 1.0
	trigger := &fakeTrigger{}
	trigger.answer = func(int) (Snapshot, error) { return Snapshot{Spec: Spec{Metric: "q", Target: target}}, nil }
	metadata := s.add("a", trigger)
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: s.engine}))
	stream, err := client.StreamMetricSpec(t.Context(), scaledObject(chat, metadata))
	require.NoError(t, err)
	next := func() float64 {
		m, err := stream.Recv()
		require.NoError(t, err)
		require.Len(t, m.GetMetricSpecs(), 1, "an empty list froze HPAs")
		return m.GetMetricSpecs()[0].GetTargetSizeFloat()
	}
	require.InDelta(t, 1, next(), 0, "at once")
	s.value(chat, metadata)
	s.streaming(metadata, 1)
	for range 50 { // far beyond the idle time: an open stream keeps its trigger
		s.tick()
	}
	trigger.mu.Lock()
	target = 4.5
	trigger.mu.Unlock()
	s.tick()
	require.InDelta(t, 4.5, next(), 0, "the next is a change")
	s.engine.Close()
	_, err = stream.Recv()
	require.Equal(t, codes.Unavailable, code(err))
	require.NotErrorIs(t, err, io.EOF)
}

// TestDrain: streams end, also those that begin later, and calls are answered as before.
func TestDrain(t *testing.T) {
	s := newStage(t, nil)
	metadata := s.add("a", counting())
	s.value(chat, metadata)
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: s.engine}))
	before, err := client.StreamIsActive(t.Context(), scaledObject(chat, metadata))
	require.NoError(t, err)
	_, err = before.Recv()
	require.NoError(t, err)
	s.engine.Drain()
	s.engine.Drain()
	_, err = before.Recv()
	require.Equal(t, codes.Unavailable, code(err))
	require.ErrorContains(t, err, "shutting down")
	after, err := client.StreamMetricSpec(t.Context(), scaledObject(chat, metadata))
	require.NoError(t, err)
	for err == nil {
		_, err = after.Recv()
	}
	require.Equal(t, codes.Unavailable, code(err))

	s.tick()
	got, err := client.GetMetrics(t.Context(), asked(chat, metadata, "q"))
	require.NoError(t, err)
	require.InDelta(t, 2, got.GetMetricValues()[0].GetMetricValueFloat(), 0)
	_, err = client.GetMetricSpec(t.Context(), scaledObject(chat, s.add("new", counting())))
	require.NoError(t, err, "a new trigger begins")
}

func TestGRPCHasLimits(t *testing.T) {
	s := newStage(t, nil)
	metadata := s.add("a", counting())
	conn := serve(t, GRPCConfig{Engine: s.engine, Registerer: prometheus.NewRegistry()})
	client := externalscaler.NewExternalScalerClient(conn)

	huge := map[string]string{"is": "a", "x": string(make([]byte, maxMessage))}
	_, err := client.IsActive(t.Context(), scaledObject(chat, huge))
	require.Equal(t, codes.ResourceExhausted, code(err))
	_, err = client.GetMetricSpec(t.Context(), scaledObject(chat, metadata))
	require.NoError(t, err, "the connection goes on")

	health, err := healthgrpc.NewHealthClient(conn).Check(t.Context(), &healthgrpc.HealthCheckRequest{Service: "externalscaler.ExternalScaler"})
	require.NoError(t, err)
	require.Equal(t, healthgrpc.HealthCheckResponse_SERVING, health.GetStatus())

	// Reflection is off.
	err = conn.Invoke(t.Context(), "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", &healthgrpc.HealthCheckRequest{}, &healthgrpc.HealthCheckResponse{})
	require.Equal(t, codes.Unimplemented, code(err))
}

// TestHeadersAreBounded: what a caller sends beside its request is kept for as long as the call takes.
func TestHeadersAreBounded(t *testing.T) {
	s := newStage(t, nil)
	metadata := s.add("a", counting())
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: s.engine}))
	with := func(n int) error {
		ctx, cancel := context.WithTimeout(grpcmetadata.AppendToOutgoingContext(t.Context(), "x", strings.Repeat("x", n)), patience)
		defer cancel()
		_, err := client.GetMetricSpec(ctx, scaledObject(chat, metadata))
		return err
	}
	require.NoError(t, with(8<<10))
	require.ErrorContains(t, with(20<<10), "header list size")
	require.NoError(t, with(0), "the connection goes on")
}

// TestCallsHaveADeadline, though KEDA sets none.
func TestCallsHaveADeadline(t *testing.T) {
	began := time.Now()
	_, err := deadline(t.Context(), nil, nil, func(ctx context.Context, _ any) (any, error) {
		until, ok := ctx.Deadline()
		require.True(t, ok)
		require.WithinRange(t, until, began, time.Now().Add(2*time.Second))
		return nil, nil //nolint:nilnil // nobody looks
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = deadline(ctx, nil, nil, func(context.Context, any) (any, error) { panic("it is over") })
	require.Equal(t, codes.Canceled, code(err))
}

// TestMessagesThatDoNotComeEndTheirCalls: who has a certificate opens a call or stream, and sends no message. Without a time for that
// each of them stays, as many as a connection has room for. A stream that has its message stays open.
func TestMessagesThatDoNotComeEndTheirCalls(t *testing.T) {
	s := newStage(t, nil)
	metadata := s.add("a", &fakeTrigger{answer: func(round int) (Snapshot, error) { return Snapshot{Active: round%2 == 0}, nil }})
	s.value(chat, metadata)
	conn := serve(t, GRPCConfig{Engine: s.engine})
	ctx, cancel := context.WithCancel(t.Context()) // without a deadline, which would go to the server
	defer cancel()
	whole, err := externalscaler.NewExternalScalerClient(conn).StreamIsActive(ctx, scaledObject(chat, metadata))
	require.NoError(t, err)
	first, err := whole.Recv()
	require.NoError(t, err)
	s.streaming(metadata, 1)

	ended := make(chan error)
	methods := []string{
		externalscaler.ExternalScaler_IsActive_FullMethodName, externalscaler.ExternalScaler_GetMetrics_FullMethodName,
		externalscaler.ExternalScaler_StreamIsActive_FullMethodName, healthgrpc.Health_Check_FullMethodName, healthgrpc.Health_Watch_FullMethodName,
	}
	for _, method := range methods {
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		require.NoError(t, err)
		go func() {
			ended <- stream.RecvMsg(&externalscaler.IsActiveResponse{})
		}()
	}
	late := time.AfterFunc(patience, cancel)
	for range methods {
		require.Error(t, <-ended)
	}
	require.True(t, late.Stop(), "the server ended them, not this test")
	s.tick()
	next, err := whole.Recv()
	require.NoError(t, err)
	require.NotEqual(t, first.GetResult(), next.GetResult())
}

// TestCallPanics: one call that panics is answered, and the server goes on.
func TestCallPanics(t *testing.T) {
	e, err := NewEngine(t.Context(), EngineConfig{Build: func(Ref, map[string]string) (Plan, error) { panic("secret things") }})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	registry := prometheus.NewRegistry()
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: e, Registerer: registry}))
	for range 2 {
		_, err = client.IsActive(t.Context(), scaledObject(chat, nil))
		require.Equal(t, codes.Internal, code(err))
		require.NotContains(t, err.Error(), "secret")
	}
	stream, err := client.StreamIsActive(t.Context(), scaledObject(chat, nil))
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Internal, code(err))
	families, err := registry.Gather()
	require.NoError(t, err)
	counted := 0.0
	for _, f := range families {
		if f.GetName() == "grpc_server_handling_seconds" {
			var bounds []float64
			for _, b := range f.GetMetric()[0].GetHistogram().GetBucket() {
				bounds = append(bounds, b.GetUpperBound())
			}
			require.Equal(t, []float64{1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1}, bounds)
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "grpc_server_handled_total" && l.GetName() == "grpc_code" && l.GetValue() == "Internal" {
					counted += m.GetCounter().GetValue()
				}
			}
		}
	}
	require.InDelta(t, 3, counted, 0, "the numbers see panics too")
}

// TestPushTriggersLeaveRoomForCalls: KEDA has two streams of each external-push trigger open, on the connection that its
// calls go over.
func TestPushTriggersLeaveRoomForCalls(t *testing.T) {
	s := newStage(t, nil)
	metadata := s.add("a", counting())
	s.value(chat, metadata)
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: s.engine}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 600 {
		active, err := client.StreamIsActive(ctx, scaledObject(chat, metadata))
		require.NoError(t, err)
		_, err = active.Recv()
		require.NoError(t, err)
		spec, err := client.StreamMetricSpec(ctx, scaledObject(chat, metadata))
		require.NoError(t, err)
		_, err = spec.Recv()
		require.NoError(t, err)
	}
	_, err := client.GetMetrics(ctx, asked(chat, metadata, "q"))
	require.NoError(t, err)
}

// TestAConnectionHasRoomForAllStreams and a thousand calls, which is what a client is told first (RFC 9113, 6.5).
func TestAConnectionHasRoomForAllStreams(t *testing.T) {
	s := newStage(t, func(c *EngineConfig) { c.MaxTriggers = 2 })
	conn, err := net.Dial("tcp", serve(t, GRPCConfig{Engine: s.engine}).Target())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	require.NoError(t, err)
	header := make([]byte, 9)
	_, err = io.ReadFull(conn, header)
	require.NoError(t, err)
	require.EqualValues(t, 4, header[3], "SETTINGS")
	settings := make([]byte, header[2])
	_, err = io.ReadFull(conn, settings)
	require.NoError(t, err)
	const maxConcurrentStreams = 3
	for one := range slices.Chunk(settings, 6) {
		if binary.BigEndian.Uint16(one) == maxConcurrentStreams {
			require.EqualValues(t, 2*2+1000, binary.BigEndian.Uint32(one[2:]))
			return
		}
	}
	t.Fatal("it is not told")
}

// TestStreamsAreLimited: what is too much is said, and does not hold up the calls beside it.
func TestStreamsAreLimited(t *testing.T) {
	s := newStage(t, func(c *EngineConfig) { c.MaxTriggers = 2 })
	metadata := s.add("a", counting())
	s.value(chat, metadata)
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: s.engine}))
	whole, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open := func() (context.CancelFunc, error) {
		ctx, cancel := context.WithCancel(whole)
		stream, err := client.StreamIsActive(ctx, scaledObject(chat, metadata))
		require.NoError(t, err)
		_, err = stream.Recv()
		return cancel, err
	}
	var end context.CancelFunc
	for range 4 {
		var err error
		end, err = open()
		require.NoError(t, err)
	}
	for range 5 {
		_, err := open()
		require.EqualError(t, err, "rpc error: code = ResourceExhausted desc = there are 4 streams, and no more than that are allowed: 2 for each trigger that there may be")
	}
	_, err := client.GetMetrics(whole, asked(chat, metadata, "q"))
	require.NoError(t, err)
	end()
	require.Eventually(t, func() bool { _, err := open(); return err == nil }, patience, 10*time.Millisecond, "one that ends makes room")
}

// TestWholeNumbers: KEDA before 2.17 reads the whole number. Noise of a float must not make it the next one, which a
// HorizontalPodAutoscaler would make a replica of.
func TestWholeNumbers(t *testing.T) {
	for n := int32(1); n < 200; n++ {
		for sum := 10; sum < 3000; sum += 10 {
			mean := float64(sum) / float64(n)
			v, _, err := metricValue(AverageValue, 10, scaling.Reading{Lower: mean, Upper: mean, Values: n}, 1, n)
			require.NoError(t, err)
			require.EqualValues(t, sum, whole(v), "%d of %d pods", sum, n)
		}
	}
	for v, want := range map[float64]int64{0: 0, 0.0004: 1, 0.001: 1, 0.9: 1, 1: 1, 1.001: 2, 450.00000000000006: 450, 1e9 + 0.5: 1e9 + 1, greatestValue: greatestValue, greatestValue - 0.5: greatestValue} {
		require.Equal(t, want, whole(v), "%v", v)
	}
}

// TestRegressionAnEvictedTriggerIsToldWhy: its stream was told that the scaler was shutting down.
func TestRegressionAnEvictedTriggerIsToldWhy(t *testing.T) {
	s := newStage(t, func(c *EngineConfig) { c.MaxTriggers = 2 })
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: s.engine}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var newest externalscaler.ExternalScaler_StreamMetricSpecClient
	for _, name := range []string{"a", "b"} {
		s.clock.advance(time.Second)
		stream, err := client.StreamMetricSpec(ctx, scaledObject(chat, s.add(name, counting())))
		require.NoError(t, err)
		_, err = stream.Recv()
		require.NoError(t, err)
		newest = stream
	}
	_, err := s.engine.Spec(Ref{Namespace: "other", Name: "chat"}, s.add("c", counting()))
	require.NoError(t, err)
	_, err = newest.Recv()
	require.EqualError(t, err, "rpc error: code = Unavailable desc = the trigger of models/chat ends: another namespace has fewer triggers, and there are as many as are allowed")
}
