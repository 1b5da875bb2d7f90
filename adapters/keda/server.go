package keda

import (
	"context"
	"math"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
	"github.com/inferscale/inferscale/scaling"
)

const (
	// leastTarget is the least target that KEDA does not round to 0.
	leastTarget = 0.001
	// greatestValue is the greatest value or target that is sent. In thousandths, in which a HorizontalPodAutoscaler counts,
	// it is far below the maximum of int64.
	greatestValue = 1e12
	// mostNamespace and mostName are the longest names that Kubernetes accepts. They are kept as long as a trigger, several
	// times, and do not count in MaxTriggers as its metadata do.
	mostNamespace = validation.DNS1123LabelMaxLength
	mostName      = validation.DNS1123SubdomainMaxLength
)

// A Server answers KEDA's calls from the snapshots of an Engine. Calls never advance an algorithm: however many callers there
// are, the answer is that of the last round.
//
//	GetMetricSpec     one spec: name and target
//	GetMetrics        one value, in both fields: the float, and the whole number not below it for KEDA before 2.17
//	IsActive          whether the target should have any replicas; KEDA asks a trigger of the type external only after
//	                  GetMetrics has answered
//	StreamIsActive    the answer of IsActive, as soon as it is known and then whenever it changes
//	StreamMetricSpec  the answer of GetMetricSpec, at once and then whenever it changes
//
// An unknown value is the error Unavailable with the reason, never a number. A HorizontalPodAutoscaler then holds. Bad
// metadata is InvalidArgument with every wrong key.
type Server struct {
	externalscaler.UnimplementedExternalScalerServer

	engine *Engine
}

// NewServer returns the Server of an engine.
func NewServer(e *Engine) *Server { return &Server{engine: e} }

// GetMetricSpec answers with the name and the target of the metric.
func (s *Server) GetMetricSpec(_ context.Context, in *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	ref, err := refOf(in)
	if err != nil {
		return nil, err
	}
	spec, err := s.engine.Spec(ref, in.GetScalerMetadata())
	if err != nil {
		return nil, err
	}
	return specResponse(spec)
}

// GetMetrics answers with the value of the metric.
func (s *Server) GetMetrics(_ context.Context, in *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	snapshot, err := s.snapshot(in.GetScaledObjectRef())
	if err != nil {
		return nil, err
	}
	if name := in.GetMetricName(); name != snapshot.Spec.Metric {
		return nil, status.Errorf(codes.InvalidArgument, "metricName: %q: must be %q, the one metric of this trigger", shortened(name), snapshot.Spec.Metric)
	}
	if snapshot.Unknown != nil {
		return nil, unavailable(snapshot.Unknown)
	}
	v := snapshot.Value
	if !(v >= 0 && v <= greatestValue) { // NaN too
		return nil, status.Errorf(codes.Unavailable, "%s: %v: must be between 0 and %g to be sent", snapshot.Spec.Metric, v, float64(greatestValue))
	}
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{{
		MetricName: snapshot.Spec.Metric, MetricValueFloat: v, MetricValue: whole(v),
	}}}, nil
}

// IsActive answers whether the target should have any replicas.
func (s *Server) IsActive(_ context.Context, in *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	snapshot, err := s.snapshot(in)
	if err != nil {
		return nil, err
	}
	if snapshot.ActiveUnknown != nil {
		return nil, unavailable(snapshot.ActiveUnknown)
	}
	return &externalscaler.IsActiveResponse{Result: snapshot.Active}, nil
}

// StreamIsActive sends the answer of IsActive as soon as it is known and then whenever it changes. A repeated true would
// delay scaling to zero.
func (s *Server) StreamIsActive(in *externalscaler.ScaledObjectRef, stream externalscaler.ExternalScaler_StreamIsActiveServer) error {
	var sent *bool
	return s.stream(stream.Context(), in, func(t *entry) error {
		snapshot, err := s.engine.answer(t)
		if err != nil || snapshot.ActiveUnknown != nil || (sent != nil && *sent == snapshot.Active) {
			return nil //nolint:nilerr // the answer is unknown, so nothing is sent
		}
		sent = &snapshot.Active
		return stream.Send(&externalscaler.IsActiveResponse{Result: snapshot.Active})
	})
}

// StreamMetricSpec sends the answer of GetMetricSpec at once and then whenever it changes.
func (s *Server) StreamMetricSpec(in *externalscaler.ScaledObjectRef, stream externalscaler.ExternalScaler_StreamMetricSpecServer) error {
	var sent Spec
	return s.stream(stream.Context(), in, func(t *entry) error {
		spec := t.spec()
		if spec == sent {
			return nil
		}
		response, err := specResponse(spec)
		if err != nil {
			return err
		}
		sent = spec
		return stream.Send(response)
	})
}

// stream calls send at once and after every round of a trigger, until the client ends the stream. Meanwhile the trigger is
// not forgotten.
func (s *Server) stream(ctx context.Context, in *externalscaler.ScaledObjectRef, send func(*entry) error) error {
	ref, err := refOf(in)
	if err != nil {
		return err
	}
	t, err := s.engine.hold(ref, in.GetScalerMetadata())
	if err != nil {
		return err
	}
	defer s.engine.release(t)
	for {
		changed := t.next()
		if err := send(t); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-s.engine.drained:
			return status.Error(codes.Unavailable, shuttingDown)
		case <-t.gone:
			return t.why
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

func (s *Server) snapshot(in *externalscaler.ScaledObjectRef) (Snapshot, error) {
	ref, err := refOf(in)
	if err != nil {
		return Snapshot{}, err
	}
	return s.engine.Snapshot(ref, in.GetScalerMetadata())
}

func refOf(in *externalscaler.ScaledObjectRef) (Ref, error) {
	ref := Ref{Namespace: in.GetNamespace(), Name: in.GetName()}
	if ref.Namespace == "" || ref.Name == "" {
		return Ref{}, status.Errorf(codes.InvalidArgument, "scaledObjectRef: %q: must have a namespace and a name", shortened(ref.String()))
	}
	if len(ref.Namespace) > mostNamespace || len(ref.Name) > mostName {
		return Ref{}, status.Errorf(codes.InvalidArgument, "scaledObjectRef: %q: must have at most %d bytes in the namespace and %d in the name", shortened(ref.String()), mostNamespace, mostName)
	}
	return ref, nil
}

func specResponse(spec Spec) (*externalscaler.GetMetricSpecResponse, error) {
	if !(spec.Target >= leastTarget && spec.Target <= greatestValue) {
		return nil, status.Errorf(codes.Internal, "target of %s: %v: must be between %g and %g to be sent", spec.Metric, spec.Target, leastTarget, float64(greatestValue))
	}
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{{
		MetricName: spec.Metric, TargetSizeFloat: spec.Target, TargetSize: whole(spec.Target),
	}}}, nil
}

// whole rounds v up to a whole number, like scaling.Ceil: the rounding error of a chain of float64 operations does not turn
// 450 into 451.
func whole(v float64) int64 {
	n := math.Floor(v)
	if scaling.Exceeds(v, n) || v-n > 1e-3 {
		n++
	}
	return int64(n)
}

func unavailable(err error) error { return status.Error(codes.Unavailable, err.Error()) }
