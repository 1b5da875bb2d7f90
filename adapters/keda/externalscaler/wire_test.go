package externalscaler_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// A wire writes messages by field number, knowing nothing of the .proto.
type wire []byte

func (w wire) text(n protowire.Number, s string) wire {
	return protowire.AppendString(protowire.AppendTag(w, n, protowire.BytesType), s)
}

func (w wire) message(n protowire.Number, m wire) wire {
	return protowire.AppendBytes(protowire.AppendTag(w, n, protowire.BytesType), m)
}

func (w wire) whole(n protowire.Number, v int64) wire {
	return protowire.AppendVarint(protowire.AppendTag(w, n, protowire.VarintType), uint64(v))
}

func (w wire) double(n protowire.Number, v float64) wire {
	return protowire.AppendFixed64(protowire.AppendTag(w, n, protowire.Fixed64Type), math.Float64bits(v))
}

// TestWire has each message as KEDA sends and reads it, in both directions.
func TestWire(t *testing.T) {
	object := wire{}.text(1, "chat").text(2, "models").message(3, wire{}.text(1, "threshold").text(2, "10"))
	ref := &externalscaler.ScaledObjectRef{Name: "chat", Namespace: "models", ScalerMetadata: map[string]string{"threshold": "10"}}
	for _, tt := range []struct {
		wire wire
		want proto.Message
	}{
		{object, ref},
		{wire{}.whole(1, 1), &externalscaler.IsActiveResponse{Result: true}},
		{
			wire{}.message(1, wire{}.text(1, "m").whole(2, 7).double(3, 6.5)),
			&externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{{MetricName: "m", TargetSize: 7, TargetSizeFloat: 6.5}}},
		},
		{wire{}.message(1, object).text(2, "m"), &externalscaler.GetMetricsRequest{ScaledObjectRef: ref, MetricName: "m"}},
		{
			wire{}.message(1, wire{}.text(1, "m").whole(2, -3).double(3, -2.5)).message(1, wire{}.text(1, "n")),
			&externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{
				{MetricName: "m", MetricValue: -3, MetricValueFloat: -2.5}, {MetricName: "n"},
			}},
		},
	} {
		name := string(tt.want.ProtoReflect().Descriptor().FullName())
		t.Run(name, func(t *testing.T) {
			got := tt.want.ProtoReflect().New().Interface()
			require.NoError(t, proto.Unmarshal(tt.wire, got))
			require.True(t, proto.Equal(tt.want, got), "%v", got)
			require.Empty(t, got.ProtoReflect().GetUnknown())
			said, err := proto.MarshalOptions{Deterministic: true}.Marshal(tt.want)
			require.NoError(t, err)
			require.Equal(t, []byte(tt.wire), said)
		})
	}
}

// TestNames are what stands in the path of a call.
func TestNames(t *testing.T) {
	require.Equal(t, "/externalscaler.ExternalScaler/IsActive", externalscaler.ExternalScaler_IsActive_FullMethodName)
	require.Equal(t, "/externalscaler.ExternalScaler/StreamIsActive", externalscaler.ExternalScaler_StreamIsActive_FullMethodName)
	require.Equal(t, "/externalscaler.ExternalScaler/GetMetricSpec", externalscaler.ExternalScaler_GetMetricSpec_FullMethodName)
	require.Equal(t, "/externalscaler.ExternalScaler/GetMetrics", externalscaler.ExternalScaler_GetMetrics_FullMethodName)
	require.Equal(t, "/externalscaler.ExternalScaler/StreamMetricSpec", externalscaler.ExternalScaler_StreamMetricSpec_FullMethodName)
	d := externalscaler.ExternalScaler_ServiceDesc
	require.Equal(t, "externalscaler.ExternalScaler", d.ServiceName)
	require.Len(t, d.Methods, 3)
	require.Len(t, d.Streams, 2)
	for _, s := range d.Streams {
		require.True(t, s.ServerStreams && !s.ClientStreams, s.StreamName)
	}
}
