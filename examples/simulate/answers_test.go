package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
)

// same is a client that answers everything alike.
type same []byte

func (same) URL(string, map[string]string) *url.URL {
	return &url.URL{Scheme: "http", Host: "127.0.0.1"}
}

func (s same) Do(context.Context, *http.Request) (*http.Response, []byte, error) {
	return &http.Response{StatusCode: http.StatusOK}, s, nil
}

// FuzzAnswers imports from a server that answers any bytes: that is an error, or a history that is written and read back the same.
func FuzzAnswers(f *testing.F) {
	const series = `{"status":"success","data":{"resultType":"%s","result":%s}}`
	for _, result := range []string{
		"null", "[]", "[null]", `[{"metric":{"__name__":"vllm:num_requests_waiting","pod":"a"},"values":[[1767571200,"1"],[1767571500,"2"]]}]`,
		`[{"metric":{"__name__":"vllm:num_requests_waiting","instance":"a","model_name":"m"},"values":[[1767571200,"NaN"],[1767571215,"-1e308"]]},null]`,
		`[{"metric":{},"histograms":[[1767571200,{"count":"1","sum":"2","buckets":[[0,"0","1","1"]]}]]}]`,
	} {
		f.Add(fmt.Appendf(nil, series, "matrix", result))
		f.Add(fmt.Appendf(nil, series, "vector", result))
	}
	f.Add([]byte(`{"status":"success","data":{"resultType":"scalar","result":[1767571200,"1"]},"warnings":["w"]}`))
	f.Add([]byte(`{"status":"error","errorType":"bad_data","error":"e"}`))
	end := time.Date(2026, 1, 5, 1, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, answer []byte) {
		r := &remote{engine: "VLLM", options: history.Options{Model: "m"}, maxSeries: 100, maxBytes: 1 << 30, end: end, length: time.Hour, stderr: io.Discard}
		ask := prometheus.NewAPI(same(answer))
		start, err := r.begins(t.Context(), ask, history.VLLM)
		if err != nil {
			return
		}
		filler, err := history.NewFiller(history.VLLM, r.options, start, end)
		require.NoError(t, err)
		queries, err := history.Queries(history.VLLM, r.options)
		require.NoError(t, err)
		p := &fetching{remote: r, ask: ask, carrier: &carrier{}, filler: filler, series: map[string]bool{}, warned: map[string]bool{}, reported: time.Now()}
		if p.fits(t.Context(), queries) != nil || p.all(t.Context(), queries) != nil || p.kubernetes(t.Context(), history.VLLM) != nil {
			return
		}
		d, err := filler.Dump()
		if err != nil {
			require.ErrorContains(t, r.flagged(err), "-")
			return
		}
		var file bytes.Buffer
		require.NoError(t, d.Write(&file))
		_, err = history.Read(&file)
		require.NoError(t, err)
	})
}
