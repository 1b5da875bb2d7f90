package defaulting_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
	"github.com/inferscale/inferscale/scaling"
)

func TestConfigRules(t *testing.T) {
	for _, row := range []struct {
		change func(*defaulting.Config)
		want   string
	}{
		{func(c *defaulting.Config) { c.ScalerName = "" }, `scalerName: "": must not be empty`},
		{func(c *defaulting.Config) { c.Address = "host" }, `address: "host": must be host:port, with a port of 1 to 65535`},
		{func(c *defaulting.Config) { c.Address = ":1" }, `address: ":1": must be host:port, with a port of 1 to 65535`},
		{func(c *defaulting.Config) { c.Address = "host:0" }, `address: "host:0": must be host:port, with a port of 1 to 65535`},
		{func(c *defaulting.Config) { c.MinReplicas = 0 }, `minReplicas: 0: must be at least 1`},
		{func(c *defaulting.Config) { c.MetricName = "" }, `metricName: "": must not be empty`},
		{func(c *defaulting.Config) { c.Protocol = "grpc" }, `protocol: "grpc": must be http or https`},
		{func(c *defaulting.Config) { c.Port = "" }, `port: "": must be the number or the name of a port`},
		{func(c *defaulting.Config) { c.Path = "metrics" }, `path: "metrics": must begin with a slash`},
		{func(c *defaulting.Config) { c.ScrapeTimeout = 0 }, `scrapeTimeout: 0s: must be a positive number of whole seconds`},
		{func(c *defaulting.Config) { c.ScrapeTimeout = 1500 * time.Millisecond }, `scrapeTimeout: 1.5s: must be a positive number of whole seconds`},
		{func(c *defaulting.Config) { c.Auth.Name = "" }, `auth.name: "": must not be empty, unless plaintext is set`},
		{func(c *defaulting.Config) { c.Auth.Kind = "Secret" }, `auth.kind: "Secret": must be TriggerAuthentication or ClusterTriggerAuthentication`},
		{func(c *defaulting.Config) { *c.Metric.ScaleUp.StabilizationWindowSeconds = 3601 }, `metric.scaleUp.stabilizationWindowSeconds: 3601: must be 0 to 3600`},
		{func(c *defaulting.Config) { *c.Metric.ScaleDown.Tolerance = resource.MustParse("-1") }, `metric.scaleDown.tolerance: "-1": must not be negative`},
		{func(c *defaulting.Config) { *c.Replicas.ScaleUp.SelectPolicy = "Most" }, `replicas.scaleUp.selectPolicy: "Most": must be Max, Min or Disabled`},
		{func(c *defaulting.Config) { c.Replicas.ScaleDown.Policies[0].Type = "" }, `replicas.scaleDown.policies[0].type: "": must be Pods or Percent`},
		{func(c *defaulting.Config) { c.Replicas.ScaleDown.Policies[0].Value = 0 }, `replicas.scaleDown.policies[0].value: 0: must be 1 to 100000`},
		{func(c *defaulting.Config) { c.Replicas.ScaleDown.Policies[0].PeriodSeconds = 1801 }, `replicas.scaleDown.policies[0].periodSeconds: 1801: must be 1 to 1800`},
	} {
		c := defaulting.Default()
		row.change(&c)
		_, err := defaulting.New(c)
		require.EqualError(t, err, row.want)
		var field *scaling.FieldError
		require.ErrorAs(t, err, &field)
	}
}

func TestEveryWrongFieldIsNamedAtOnce(t *testing.T) {
	_, err := defaulting.New(defaulting.Config{})
	require.Error(t, err)
	require.Len(t, strings.Split(err.Error(), "\n"), 10)
}

// TestNilLeavesAddNothing: a nil field of a behavior is no default.
func TestNilLeavesAddNothing(t *testing.T) {
	object := scaledObject(`{"triggers":[` + ours + `]}`)
	d := defaulter(t, func(c *defaulting.Config) { c.Metric = defaulting.Behavior{} })
	require.Equal(t, "none", added(t, d, object, "/spec/advanced"))

	d = defaulter(t, func(c *defaulting.Config) {
		c.Metric.ScaleDown = nil
		c.Metric.ScaleUp = &defaulting.Rules{Tolerance: resource.NewMilliQuantity(50, resource.DecimalSI)}
	})
	_, warnings, err := d.Default([]byte(scaledObject(`{"triggers":[{"type":"external","metadata":{"scalerName":"keda-kaito-scaler","mode":"replicas"}}]}`)))
	require.NoError(t, err)
	require.Empty(t, warnings, "no rules are not those of the other mode")
	require.Equal(t, `{"horizontalPodAutoscalerConfig":{"behavior":{"scaleUp":{"tolerance":"50m"}}}}`, added(t, d, object, "/spec/advanced"))
}
