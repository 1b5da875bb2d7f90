package scrape

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRegressionDynamoOne: what a worker of Dynamo 0.8 and later, and so 1.0, has at :8081/metrics. The names of the table had "kvstats" in them, which is
// the name of a Rust module.
func TestRegressionDynamoOne(t *testing.T) {
	page := `# HELP dynamo_component_gpu_cache_usage_percent GPU cache usage as a percentage (0.0-1.0)
# TYPE dynamo_component_gpu_cache_usage_percent gauge
dynamo_component_gpu_cache_usage_percent{dp_rank="0",dynamo_component="backend",dynamo_namespace="dynamo",model="m"} 0.5
dynamo_component_gpu_cache_usage_percent{dp_rank="1",dynamo_component="backend",dynamo_namespace="dynamo",model="m"} 1
# TYPE dynamo_component_kv_cache_hit_rate gauge
dynamo_component_kv_cache_hit_rate{dp_rank="0",dynamo_component="backend",dynamo_namespace="dynamo",model="m"} 0.25
# TYPE dynamo_component_total_blocks gauge
dynamo_component_total_blocks{dp_rank="0",dynamo_component="backend",dynamo_namespace="dynamo",model="m"} 1000
`
	m, err := Dynamo.Metric(KVCacheUsage)
	require.NoError(t, err)
	v, fail := readOne(t, page, m)
	require.Nil(t, fail)
	require.InDelta(t, 0.75, v.num/v.den, 1e-9)

	m, err = Dynamo.Metric(PrefixCacheHitRate)
	require.NoError(t, err)
	v, fail = readOne(t, page, m)
	require.Nil(t, fail)
	require.InDelta(t, 0.25, v.num/v.den, 1e-9)

	v, fail = readOne(t, page, Named("dynamo_component_gpu_cache_usage_percent"))
	require.Nil(t, fail)
	require.InDelta(t, 0.75, v.num/v.den, 1e-9)
}
