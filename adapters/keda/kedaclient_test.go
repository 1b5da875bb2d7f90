package keda

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// A kedaRow is a row of keda_external_client.
type kedaRow struct {
	Case string `json:"case"`
	Args string `json:"args"`
	Out  struct {
		NewError string `json:"newError"`
		Specs    []struct {
			Metric       string             `json:"metric"`
			Type         string             `json:"type"`
			AverageValue *resource.Quantity `json:"averageValue"`
			Value        *resource.Quantity `json:"value"`
		} `json:"specs"`
		SpecsNil bool `json:"specsNil"`
		Values   []struct {
			Metric string            `json:"metric"`
			Value  resource.Quantity `json:"value"`
			Milli  int64             `json:"milli"`
		} `json:"values"`
		Active     bool   `json:"active"`
		ValueError string `json:"valueError"`
		Push       []bool `json:"push"`
		PushSpecs  int    `json:"pushSpecs"`
	} `json:"out"`
}

// answer returns what the row says, in the words of kedaAsks.
func (r *kedaRow) answer() kedaAnswer {
	a := kedaAnswer{specsNil: r.Out.SpecsNil, active: r.Out.Active, err: r.Out.ValueError}
	for _, s := range r.Out.Specs {
		q := s.AverageValue
		if s.Type == "Value" {
			q = s.Value
		}
		a.specs = append(a.specs, fmt.Sprintf("%s %s %s", s.Metric, s.Type, canonical(*q)))
	}
	for _, v := range r.Out.Values {
		a.values = append(a.values, fmt.Sprintf("%s %s", v.Metric, canonical(v.Value)))
	}
	return a
}

func canonical(q resource.Quantity) string {
	text := q.AsDec().String()
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// An asking is what the arguments of a row say.
type asking struct {
	metadata   map[string]string // as KEDA sends it
	index      int
	metric     string
	metricType string
	push       bool
	timeout    time.Duration
	tls        bool
}

// words splits arguments; what is within $( ) is one word.
func words(args string) []string {
	var all []string
	word, depth := "", 0
	for _, r := range args + " " {
		switch {
		case r == ' ' && depth == 0:
			if word != "" {
				all = append(all, word)
			}
			word = ""
			continue
		case r == '(':
			depth++
		case r == ')':
			depth--
		}
		word += string(r)
	}
	return all
}

// told are the keys by which the server is told what to do, and those of KEDA.
var told = []string{
	"scalerAddress", "target", "targetInt", "value", "valueInt", "names", "returnNames", "active", "fail", "sleep", "stream", "streamSpec",
	"enableTLS", "unsafeSsl", "caCert", "tlsClientCert", "tlsClientKey",
}

func askingOf(t *testing.T, args string) asking {
	t.Helper()
	a := asking{metadata: make(map[string]string), metricType: string(AverageValue), timeout: math.MaxInt64}
	env := make(map[string]string)
	all := words(args)
	for i := 0; i < len(all); i++ {
		if all[i] == "$CA" || all[i] == "$CC" {
			a.tls = true
			continue
		}
		require.Less(t, i+1, len(all), "%s has no value", all[i])
		flag, value := all[i], all[i+1]
		i++
		key, rest, found := strings.Cut(value, "=")
		var err error
		switch flag {
		case "-m":
			require.True(t, found && (slices.Contains(told, key) || strings.HasSuffix(key, fromEnv)), "unknown form: -m %s", value)
			a.metadata[key] = rest
		case "-e":
			env[key] = rest
		case "-a", "-af":
			a.tls = true
		case "-index":
			a.index, err = strconv.Atoi(value)
		case "-metric":
			a.metric = value
		case "-metricType":
			a.metricType = value
		case "-push":
			a.push = true
			_, err = time.ParseDuration(value)
		case "-timeout":
			a.timeout, err = time.ParseDuration(value)
		default:
			require.Fail(t, "unknown form", "%s in %s", flag, args)
		}
		require.NoError(t, err, args)
	}
	for key, value := range a.metadata { // KEDA puts values in place of names, and drops what has none
		if resolved, ok := env[value]; strings.HasSuffix(key, fromEnv) {
			a.metadata[key] = resolved
			if !ok {
				delete(a.metadata, key)
			}
		}
	}
	return a
}

// plain reports whether the server is the one without TLS.
func (a *asking) plain() bool {
	return a.metadata["scalerAddress"] == "$PL" && !a.tls && a.metadata["enableTLS"] != "true"
}

func (a *asking) number(t *testing.T, key string) float64 {
	t.Helper()
	if a.metadata[key] == "" {
		return 0
	}
	v, err := strconv.ParseFloat(a.metadata[key], 64)
	require.NoError(t, err, "%s=%s", key, a.metadata[key])
	return v
}

// meant returns the number that the server is to send: the float if there is one, else the whole number.
func (a *asking) meant(t *testing.T, key string) float64 {
	t.Helper()
	if _, ok := a.metadata[key]; ok {
		return a.number(t, key)
	}
	return a.number(t, key+"Int")
}

func (a *asking) names() []string {
	text, ok := a.metadata["names"]
	switch {
	case !ok:
		return []string{"q"}
	case text == "":
		return nil
	}
	return strings.Split(text, ",")
}

func (a *asking) fails(what string) bool {
	return slices.Contains(strings.Split(a.metadata["fail"], ","), what)
}

func (a *asking) object() *externalscaler.ScaledObjectRef {
	return &externalscaler.ScaledObjectRef{Namespace: "models", Name: "vectors", ScalerMetadata: a.metadata}
}

// A kedaAnswer is what KEDA has after it has asked.
type kedaAnswer struct {
	specs    []string
	specsNil bool
	values   []string
	active   bool
	err      string
}

// kedaAsks asks a server as KEDA v2.21.0 does.
func kedaAsks(ctx context.Context, server externalscaler.ExternalScalerServer, a asking) kedaAnswer {
	var answer kedaAnswer
	prefix := fmt.Sprintf("s%d-", a.index)
	name := a.metric
	specs, err := server.GetMetricSpec(ctx, a.object())
	answer.specsNil = err != nil
	for _, s := range specs.GetMetricSpecs() {
		q := kedaQuantity(s.GetTargetSizeFloat(), s.GetTargetSize())
		answer.specs = append(answer.specs, fmt.Sprintf("%s%s %s %s", prefix, s.GetMetricName(), a.metricType, canonical(q)))
		if name == "" {
			name = prefix + s.GetMetricName()
		}
	}
	index, bare, found := strings.Cut(name, "-")
	switch _, err := strconv.Atoi(strings.TrimPrefix(index, "s")); {
	case !found || err != nil || index[0] != 's':
		answer.err = "metric name without index prefix"
		return answer
	case index+"-" != prefix:
		answer.err = "metric name contains incorrect index prefix"
		return answer
	}
	metrics, err := server.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: a.object(), MetricName: bare})
	if err != nil {
		answer.err = err.Error()
		return answer
	}
	active, err := server.IsActive(ctx, a.object())
	if err != nil {
		answer.err = err.Error()
		return answer
	}
	answer.active = active.GetResult()
	for _, v := range metrics.GetMetricValues() {
		q := kedaQuantity(v.GetMetricValueFloat(), v.GetMetricValue())
		answer.values = append(answer.values, name+" "+canonical(q))
	}
	return answer
}

// kedaQuantity is what KEDA makes of the two fields of a number.
func kedaQuantity(float float64, whole int64) resource.Quantity {
	switch {
	case math.IsInf(float, 1):
		return *resource.NewQuantity(0, resource.DecimalSI)
	case float > 0 && float == math.Trunc(float):
		return *resource.NewQuantity(int64(float), resource.DecimalSI)
	case float > 0:
		return *resource.NewMilliQuantity(int64(math.Round(float*1000)), resource.DecimalSI)
	}
	return *resource.NewQuantity(max(whole, 0), resource.DecimalSI)
}

// A toldServer does what the metadata say.
type toldServer struct {
	externalscaler.UnimplementedExternalScalerServer

	t *testing.T
	a asking
}

func (s toldServer) GetMetricSpec(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	if s.a.fails("spec") {
		return nil, status.Error(codes.Unavailable, "dummy failure in spec")
	}
	r := &externalscaler.GetMetricSpecResponse{}
	for _, name := range s.a.names() {
		r.MetricSpecs = append(r.MetricSpecs, &externalscaler.MetricSpec{
			MetricName: name, TargetSizeFloat: s.a.number(s.t, "target"), TargetSize: int64(s.a.number(s.t, "targetInt")),
		})
	}
	return r, nil
}

func (s toldServer) GetMetrics(_ context.Context, in *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	if s.a.fails("metrics") {
		return nil, status.Error(codes.Unavailable, "dummy failure in metrics")
	}
	if s.a.sleep(s.t) >= s.a.timeout {
		return nil, status.Error(codes.DeadlineExceeded, context.DeadlineExceeded.Error())
	}
	names := []string{in.GetMetricName()}
	if text, ok := s.a.metadata["returnNames"]; ok {
		names = slices.DeleteFunc(strings.Split(text, ","), func(name string) bool { return name == "" })
	}
	r := &externalscaler.GetMetricsResponse{}
	for _, name := range names {
		r.MetricValues = append(r.MetricValues, &externalscaler.MetricValue{
			MetricName: name, MetricValueFloat: s.a.number(s.t, "value"), MetricValue: int64(s.a.number(s.t, "valueInt")),
		})
	}
	return r, nil
}

func (s toldServer) IsActive(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	if s.a.fails("active") {
		return nil, status.Error(codes.Unavailable, "dummy failure in active")
	}
	return &externalscaler.IsActiveResponse{Result: s.a.metadata["active"] != "false"}, nil
}

func (a *asking) sleep(t *testing.T) time.Duration {
	t.Helper()
	if a.metadata["sleep"] == "" {
		return 0
	}
	d, err := time.ParseDuration(a.metadata["sleep"])
	require.NoError(t, err)
	return d
}
