package history_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/scaling"
)

// FuzzAnswers fills a dump from any answers, in the form of query_range: of each engine, to each of its queries in turn. What is refused is
// named, and what is taken is written, and read back the same.
func FuzzAnswers(f *testing.F) {
	f.Add(uint8(0), uint8(0), []byte(`[{"metric":{"__name__":"vllm:num_requests_waiting","pod":"a","engine":"0"},"values":[[1767571200,"1"],[1767571215,"NaN"],[1767571260,"3"]]}]`))
	f.Add(uint8(0), uint8(3), []byte(`[{"metric":{"__name__":"vllm:num_requests_waiting","instance":"10.0.0.1:8000"},"values":[[1767571230,"1"],[1767571200,"2"]]},{"metric":{"__name__":"vllm:num_requests_running","pod":"a","namespace":"n"},"values":[[1767571500,"1e308"]]}]`))
	f.Add(uint8(0), uint8(6), []byte(`[{"metric":{"__name__":"vllm:time_to_first_token_seconds_bucket","pod":"a","le":"+Inf"},"values":[[1767571200,"1"],[1767571500,"7"]]}]`))
	f.Add(uint8(1), uint8(200), []byte(`[{"metric":{"__name__":"kube_pod_created","pod":"exporter","exported_pod":"a","uid":"u"},"values":[[1767571200,"1767571100"]]}]`))
	f.Add(uint8(2), uint8(0), []byte(`[{"metric":{"__name__":"tgi_queue_size","pod":"\u202e"},"values":[[9000000000000000,"1"]]},{"metric":{},"values":[]}]`))
	begin := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, engine, query uint8, answer []byte) {
		var result []struct {
			Metric map[string]string `json:"metric"`
			Values [][2]any          `json:"values"`
		}
		if json.Unmarshal(answer, &result) != nil {
			return
		}
		e := history.Engines()[int(engine)%len(history.Engines())]
		o := history.Options{Workload: "w"}
		queries, err := history.Queries(e, o)
		require.NoError(t, err)
		filler, err := history.NewFiller(e, o, begin, begin.Add(time.Hour))
		require.NoError(t, err)
		for i, series := range result {
			q := &queries[(int(query)+i)%len(queries)]
			err := filler.Add(q, series.Metric, len(series.Values), func(k int) (int64, float64) {
				at, _ := series.Values[k][0].(float64)
				text, _ := series.Values[k][1].(string)
				value := math.NaN()
				_ = json.Unmarshal([]byte(text), &value) // NaN and infinities are left out
				return int64(at) * 1000, value
			})
			if err != nil {
				named(t, err)
				return
			}
		}
		filler.Pods()
		d, err := filler.Dump()
		if err != nil {
			named(t, err)
			return
		}
		for i := range d.Series {
			require.LessOrEqual(t, len(d.Series[i].Values), d.Steps())
		}
		requireReadBack(t, d)
		requireReduced(t, d)
	})
}

// named requires that an error has a field and a rule.
func named(t *testing.T, err error) {
	t.Helper()
	var field *scaling.FieldError
	require.ErrorAs(t, err, &field)
	require.NotEmpty(t, field.Field)
	require.NotEmpty(t, field.Rule)
}
