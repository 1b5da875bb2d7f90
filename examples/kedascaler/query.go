package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

const (
	warmUp    = 10 * time.Second // how long the first answer may take
	askAgain  = 100 * time.Millisecond
	watchStep = time.Second
)

// An answer is what a scaler said to the three calls that KEDA makes for a value.
type answer struct {
	spec   *externalscaler.MetricSpec
	value  *externalscaler.MetricValue
	active bool
	err    error // of the value
	took   time.Duration
}

// ask asks a scaler as KEDA does, and prints what it says.
func (o *options) ask(ctx context.Context, w io.Writer) error {
	creds := insecure.NewCredentials()
	if o.certDir != "" {
		config, err := o.clientTLS()
		if err != nil {
			return err
		}
		creds = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient(o.query, grpc.WithTransportCredentials(creds))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	client := externalscaler.NewExternalScalerClient(conn)
	namespace, name, _ := strings.Cut(o.object, "/")
	ref := &externalscaler.ScaledObjectRef{Namespace: namespace, Name: name, ScalerMetadata: o.keys}
	first, err := warm(ctx, client, ref)
	if err != nil {
		return said(err)
	}
	if o.watch == 0 {
		first.print(w)
		return said(first.err)
	}
	return watch(ctx, w, client, ref, o.watch)
}

// said is an error of a scaler as text: its code and its message.
func said(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return fmt.Errorf("%s: %s", s.Code(), s.Message())
	}
	return err
}

// warm asks until the first round has ended: until then the scaler has no answer.
func warm(ctx context.Context, client externalscaler.ExternalScalerClient, ref *externalscaler.ScaledObjectRef) (answer, error) {
	limit, cancel := context.WithTimeout(ctx, warmUp)
	defer cancel()
	for {
		a, err := once(ctx, client, ref)
		switch {
		case err != nil:
			return a, err
		case status.Code(a.err) != codes.Unavailable || !strings.Contains(a.err.Error(), "cold start"):
			return a, nil
		}
		select {
		case <-limit.Done():
			return a, a.err
		case <-time.After(askAgain):
		}
	}
}

// once makes the three calls.
func once(ctx context.Context, client externalscaler.ExternalScalerClient, ref *externalscaler.ScaledObjectRef) (answer, error) {
	began := time.Now()
	specs, err := client.GetMetricSpec(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	if len(specs.GetMetricSpecs()) != 1 {
		return answer{}, fmt.Errorf("%d metric specs: must be 1", len(specs.GetMetricSpecs()))
	}
	a := answer{spec: specs.GetMetricSpecs()[0]}
	values, err := client.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: ref, MetricName: a.spec.GetMetricName()})
	switch {
	case err != nil:
		a.err = err
		return a, nil //nolint:nilerr // it is part of the answer
	case len(values.GetMetricValues()) != 1:
		return a, fmt.Errorf("%d metric values: must be 1", len(values.GetMetricValues()))
	}
	a.value = values.GetMetricValues()[0]
	active, err := client.IsActive(ctx, ref)
	if err != nil {
		a.err = err
		return a, nil //nolint:nilerr // it is part of the answer
	}
	a.active, a.took = active.GetResult(), time.Since(began)
	return a, nil
}

func (a *answer) print(w io.Writer) {
	fmt.Fprintf(w, "metric   %s\n", a.spec.GetMetricName())
	fmt.Fprintf(w, "target   %g\n", a.spec.GetTargetSizeFloat())
	if a.err != nil {
		return // it is the command's error
	}
	fmt.Fprintf(w, "value    %g\n", a.value.GetMetricValueFloat())
	fmt.Fprintf(w, "active   %t\n", a.active)
	fmt.Fprintf(w, "replicas %.0f, of a HorizontalPodAutoscaler with an AverageValue target and no tolerance\n", a.replicas())
	fmt.Fprintf(w, "took     %s for three calls\n", a.took.Round(time.Microsecond))
}

// replicas is what a HorizontalPodAutoscaler makes of the value, before its bounds and policies.
func (a *answer) replicas() float64 {
	return max(0, math.Ceil(a.value.GetMetricValueFloat()/a.spec.GetTargetSizeFloat()-1e-9)) // not -0
}

// watch prints a line whenever the answer changes.
func watch(ctx context.Context, w io.Writer, client externalscaler.ExternalScalerClient, ref *externalscaler.ScaledObjectRef, length time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	fmt.Fprintf(w, "%-8s  %10s  %8s  %-6s  %s\n", "TIME", "VALUE", "REPLICAS", "ACTIVE", "")
	tick := time.NewTicker(watchStep)
	defer tick.Stop()
	last := ""
	for {
		a, err := once(ctx, client, ref)
		line, failed := "", a.err
		if err != nil {
			failed = err
		}
		switch {
		case ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded || status.Code(err) == codes.Canceled:
			return nil // it was to end now
		case err != nil && status.Code(err) != codes.Unavailable:
			return said(err)
		case failed != nil:
			line = fmt.Sprintf("%10s  %8s  %-6s  %s", "-", "-", "-", status.Convert(failed).Message())
		default:
			line = fmt.Sprintf("%10.3g  %8.0f  %-6t", a.value.GetMetricValueFloat(), a.replicas(), a.active)
		}
		if line != last {
			fmt.Fprintf(w, "%s  %s\n", time.Now().Format(time.TimeOnly), strings.TrimRight(line, " "))
			last = line
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
