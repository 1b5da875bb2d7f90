package scrape

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scaling"
)

func TestTheZeroConfigReadsTheSeedsSource(t *testing.T) {
	c := Config{}.orDefault()
	require.NoError(t, Config{}.Validate())
	require.Equal(t, []Metric{Named("vllm:num_requests_waiting")}, c.Metrics)
	require.Equal(t, "http://:5000/metrics", c.Metrics[0].Endpoint.String())
	require.Equal(t, 15*time.Second, c.Interval)
	require.Equal(t, 3*time.Second, c.Timeout)
	require.Equal(t, time.Second, c.DialTimeout)
	require.Equal(t, 13500*time.Millisecond, c.SweepTimeout)
	require.Equal(t, 30*time.Second, c.Staleness)
	require.Equal(t, 64, c.Concurrency)
	require.Equal(t, int64(16<<20), c.MaxBody)
	require.Equal(t, 10_000, c.MaxSeries)
	require.NotNil(t, c.Now)
	short := Config{Interval: time.Second}.orDefault()
	require.Equal(t, 500*time.Millisecond, short.Timeout)
	require.Equal(t, 500*time.Millisecond, short.DialTimeout)
	require.NoError(t, short.Validate())
}

func TestValidateReportsEveryWrongField(t *testing.T) {
	err := Config{
		Metrics: []Metric{
			{Name: "", Fill: math.NaN(), Endpoint: Endpoint{Scheme: "ftp", Port: 70000, Path: "//evil/x"}},
			{Name: "two", Terms: []Series{
				{Families: []string{""}, Read: Quantile, Quantile: 1, Match: []Matcher{{}}},
				{Read: Value, Quantile: 0.5, Scale: -1, Within: 9, Across: 9, GroupBy: []string{""}, Prefer: Matcher{Value: "x"}},
			}},
			{Name: "two", Terms: []Series{{Families: []string{"a\nb"}, Read: 9}}, Over: []Series{{}}},
		},
		Interval: -1, Timeout: -1, DialTimeout: -1, SweepTimeout: -1, Spread: -1, Staleness: -1, Concurrency: -1, MaxBody: -1, MaxSeries: -1,
		TLS: TLSConfig{CertFile: "c"}, Token: "a b" + secret, TokenFile: "t",
	}.Validate()
	var fields []string
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	for _, e := range joined.Unwrap() {
		var f *scaling.FieldError
		require.True(t, errors.As(e, &f))
		fields = append(fields, f.Field)
	}
	require.Equal(t, []string{
		"metrics[0].name", "metrics[0].fill", "metrics[0].endpoint.scheme", "metrics[0].endpoint.port", "metrics[0].endpoint.path",
		"metrics[0].terms", "metrics[1].terms", "metrics[1].terms[0].families[0]", "metrics[1].terms[0].match[0].label",
		"metrics[1].terms[0].quantile", "metrics[1].terms[1].families", "metrics[1].terms[1].prefer.label",
		"metrics[1].terms[1].groupBy[0]", "metrics[1].terms[1].quantile", "metrics[1].terms[1].scale",
		"metrics[1].terms[1].within", "metrics[1].terms[1].across", "metrics[2].terms[0].families[0]", "metrics[2].terms[0].read",
		"metrics[2].over[0].families", "metrics[2].name", "interval", "timeout", "dialTimeout", "sweepTimeout", "spread",
		"staleness", "concurrency", "maxBody", "maxSeries", "tls.keyFile", "tokenFile", "token",
	}, fields)
	require.NotContains(t, err.Error(), secret)
	_, err = New(Config{Timeout: 15 * time.Second})
	require.EqualError(t, err, "timeout: 15s: must be positive and below interval")
}

// TestLimitsThatAreAllowed: each number may be at its limit, and not beyond.
func TestLimitsThatAreAllowed(t *testing.T) {
	series := Series{Families: []string{"x"}, Across: Sum}
	of := func(change func(m *Metric, s *Series)) Config {
		m, s := Metric{Name: "x"}, series
		change(&m, &s)
		m.Terms = []Series{s}
		return Config{Metrics: []Metric{m}}
	}
	port := func(n int) Config { return of(func(m *Metric, _ *Series) { m.Endpoint.Port = n }) }
	fill := func(v float64) Config { return of(func(m *Metric, _ *Series) { m.Fill = v }) }
	scale := func(v float64) Config { return of(func(_ *Metric, s *Series) { s.Scale = v }) }
	quantile := func(v float64) Config {
		return of(func(_ *Metric, s *Series) { s.Read, s.Quantile = Quantile, v })
	}
	for _, row := range []struct {
		name     string
		good     []Config
		bad      []Config
		rejected string
	}{
		{"port", []Config{port(1), port(65535)}, []Config{port(-1), port(65536)}, "metrics[0].endpoint.port"},
		{"fill", []Config{fill(0), fill(math.MaxFloat64)}, []Config{fill(-5e-324), fill(math.Inf(1))}, "metrics[0].fill"},
		{"scale", []Config{scale(0), scale(math.MaxFloat64)}, []Config{scale(-5e-324), scale(math.Inf(1))}, "metrics[0].terms[0].scale"},
		{"quantile", []Config{quantile(5e-324), quantile(math.Nextafter(1, 0))}, []Config{quantile(0), quantile(1)}, "metrics[0].terms[0].quantile"},
		{
			"within",
			[]Config{of(func(_ *Metric, s *Series) { s.Within = Min })},
			[]Config{of(func(_ *Metric, s *Series) { s.Within = Min + 1 })},
			"metrics[0].terms[0].within",
		},
		{
			"across",
			[]Config{of(func(_ *Metric, s *Series) { s.Across = Min })},
			[]Config{of(func(_ *Metric, s *Series) { s.Across = Min + 1 })},
			"metrics[0].terms[0].across",
		},
		{
			"read",
			[]Config{of(func(_ *Metric, s *Series) { s.Read = Counts })},
			[]Config{of(func(_ *Metric, s *Series) { s.Read = Counts + 1 })},
			"metrics[0].terms[0].read",
		},
		{"interval", []Config{{Interval: 10}}, []Config{{Interval: -1, Timeout: 1, DialTimeout: 1, SweepTimeout: 1, Staleness: 1}}, "interval"},
		{
			"timeout", []Config{{Timeout: 1}, {Timeout: 15*time.Second - 1}}, []Config{
				{Timeout: 15 * time.Second}, {Interval: 1, DialTimeout: 1, SweepTimeout: 1}, // half of that is nothing
			}, "timeout",
		},
		{"dialTimeout", []Config{{DialTimeout: 1}}, []Config{{DialTimeout: -1}}, "dialTimeout"},
		{"sweepTimeout", []Config{{SweepTimeout: 1}}, []Config{{SweepTimeout: -1}}, "sweepTimeout"},
		{"spread", []Config{{Spread: 13500*time.Millisecond - 1}}, []Config{{Spread: 13500 * time.Millisecond}, {Spread: -1}}, "spread"},
		{"staleness", []Config{{Staleness: 1}}, []Config{{Staleness: -1}}, "staleness"},
		{"concurrency", []Config{{Concurrency: 1}}, []Config{{Concurrency: -1}}, "concurrency"},
		{"maxBody", []Config{{MaxBody: 1}, {MaxBody: 1<<40 - 1}}, []Config{{MaxBody: -1}, {MaxBody: 1 << 40}}, "maxBody"},
		{"maxSeries", []Config{{MaxSeries: 1}}, []Config{{MaxSeries: -1}}, "maxSeries"},
		{"metrics", []Config{{Metrics: manyMetrics(MaxMetrics)}}, []Config{{Metrics: manyMetrics(MaxMetrics + 1)}}, "metrics"},
		{
			"token",
			[]Config{{Token: "!~"}, {Token: strings.Repeat("x", 16<<10)}},
			[]Config{{Token: " "}, {Token: "\x7f"}, {Token: strings.Repeat("x", 16<<10+1)}},
			"token",
		},
		{"tokenFile", []Config{{TokenFile: "t"}, {Token: "t"}}, []Config{{Token: "t", TokenFile: "t"}}, "tokenFile"},
		{
			"tls.keyFile",
			[]Config{{TLS: TLSConfig{CertFile: "c", KeyFile: "k"}}},
			[]Config{{TLS: TLSConfig{CertFile: "c"}}, {TLS: TLSConfig{KeyFile: "k"}}},
			"tls.keyFile",
		},
	} {
		for _, c := range row.good {
			require.NoError(t, c.Validate(), row.name)
		}
		for _, c := range row.bad {
			var field *scaling.FieldError
			require.ErrorAs(t, c.Validate(), &field, row.name)
			require.Equal(t, row.rejected, field.Field)
		}
	}
}

// TestWhatOnlyCountsHave: Sum and Less are counters, and for Counts alone; what is wrong in them is told with its place.
func TestWhatOnlyCountsHave(t *testing.T) {
	h, counter := Series{Families: []string{"h"}, Read: Counts}, rate("c_total")
	for _, row := range []struct {
		metric Metric
		wrong  []string
	}{
		{Metric{Terms: []Series{h}, Sum: []Series{counter}, Less: []Series{counter}}, nil},
		{Metric{Terms: []Series{h}, Less: []Series{counter}}, []string{"less"}},
		{Metric{Terms: []Series{counter}, Sum: []Series{counter}, Less: []Series{counter}}, []string{"sum"}},
		{Metric{Terms: []Series{h}, Sum: []Series{gauge(Sum, "g"), counter}, Less: []Series{gauge(Sum, "g")}}, []string{"sum[0].read", "less[0].read"}},
		{Metric{Terms: []Series{h}, Sum: []Series{{Read: Rate}}, Less: []Series{counter, {Read: Rate}}}, []string{"sum[0].families", "less[1].families"}},
		{Metric{Terms: []Series{h, h}}, []string{"terms"}},
		{Metric{Terms: []Series{h}, Over: []Series{counter}}, []string{"terms"}},
		{Metric{Terms: []Series{gauge(Sum, "g")}, Over: []Series{mean("m")}}, []string{"terms"}},
	} {
		row.metric.Name = "m"
		if len(row.metric.Terms)+len(row.metric.Over) == 2 {
			require.EqualError(t, row.metric.Validate(), "terms: 2: a Mean, Quantile or Counts must be the only series")
		}
		if row.wrong != nil && row.wrong[0] == "sum" {
			require.EqualError(t, row.metric.Validate(), "sum: 2: must be given only with Counts, and less only with sum")
		}
		var got []string
		err := row.metric.Validate()
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				var f *scaling.FieldError
				require.ErrorAs(t, e, &f)
				got = append(got, f.Field)
			}
		} else if err != nil {
			var f *scaling.FieldError
			require.ErrorAs(t, err, &f)
			got = append(got, f.Field)
		}
		require.Equal(t, row.wrong, got)
	}
}

// TestHostsAndPorts: a host is letters, digits, dots, dashes and underscores, of at most 255 bytes, or an IPv6 address.
func TestHostsAndPorts(t *testing.T) {
	for host, ok := range map[string]bool{
		"azAZ09.-_": true, "`": false, "{": false, "@": false, "[": false, "/": false, ":": false, "": false, "::1": true, "a:b": false,
		strings.Repeat("h", 255): true, strings.Repeat("h", 256): false,
	} {
		_, own, err := target(&Pod{Host: host}, Endpoint{}.orDefault())
		require.Equal(t, ok, err == nil, "%q", host)
		require.False(t, own)
	}
	for url, ok := range map[string]bool{
		"http://h/m": true, "http://h:1/m": true, "http://h:65535/m": true, "http://h:0/m": false, "http://h:65536/m": false, "ws://h/m": false,
		"http://\x00/m": false, "http://u@h/m": false, "http://h/m#": false, "http:///m": false, "http://h//m": false,
	} {
		_, own, err := target(&Pod{URL: url}, Endpoint{}.orDefault())
		require.Equal(t, ok, err == nil, url)
		require.Equal(t, ok, own, "what cannot be used has no page of its own: %s", url)
	}
}

func TestPathsAndTargets(t *testing.T) {
	for path, ok := range map[string]bool{
		"/metrics": true, "/": true, "/a/b?x=//y": true, "/a%20b": true, "/prometheus/metrics?name[]=a": true,
		"metrics": false, "//evil/x": false, "http://evil/x": false, "/a#b": false, "/a b": false, "/a\tb": false,
		"/a!b~": true, "/a\x7fb": false, "/a\x00": false, "/a%zz": false, "/a\\b": false, "/a\r\nHost: x": false, "": true, // empty is the default
	} {
		m := Named("x")
		m.Endpoint.Path = path
		require.Equal(t, ok, m.Validate() == nil, "%q", path)
	}
	for _, row := range []struct {
		pod  Pod
		e    Endpoint
		want string
		own  bool
	}{
		{Pod{Host: "10.0.0.1"}, Endpoint{}, "http://10.0.0.1:5000/metrics", false},
		{Pod{Host: "2001:db8::1"}, Endpoint{Port: 8000}, "http://[2001:db8::1]:8000/metrics", false},
		{Pod{Host: "fe80::1%eth0"}, Endpoint{}, "http://[fe80::1%25eth0]:5000/metrics", false},
		{Pod{Host: "pod-0.svc"}, Endpoint{Scheme: "https", Path: "/a?b=c?d"}, "https://pod-0.svc:5000/a?b=c?d", false},
		{Pod{Host: "h"}, Endpoint{Path: "/a%2Fb"}, "http://h:5000/a%2Fb", false},
		{Pod{URL: "http://127.0.0.1:81"}, Endpoint{Path: "/x?y"}, "http://127.0.0.1:81/x?y", false},
		{Pod{URL: "https://h/m?n"}, Endpoint{Path: "/x"}, "https://h/m?n", true},
		{Pod{URL: "https://h/m?"}, Endpoint{Path: "/x"}, "https://h/m", true},
		{Pod{URL: "http://[::1]:81/", Host: "ignored"}, Endpoint{Path: "/x"}, "http://[::1]:81/", true},
	} {
		u, own, err := target(&row.pod, row.e.orDefault())
		require.NoError(t, err)
		require.Equal(t, row.want, u.String())
		require.Equal(t, row.own, own)
		again, err := url.Parse(u.String())
		require.NoError(t, err)
		require.Equal(t, u.RequestURI(), again.RequestURI())
	}
}

func TestMatchers(t *testing.T) {
	page := "q{a=\"1\"} 1\nq{a=\"2\",b=\"x\"} 2\nq{b=\"x\"} 4\n"
	for _, row := range []struct {
		match []Matcher
		want  float64
	}{
		{nil, 7},
		{[]Matcher{{Label: "a", Value: "1"}}, 1},
		{[]Matcher{{Label: "a"}}, 4}, // a label that is not there is empty
		{[]Matcher{{Label: "a", Not: true}}, 3},
		{[]Matcher{{Label: "a", Value: "1", Not: true}, {Label: "b", Value: "x"}}, 6},
	} {
		s, fail := readOne(t, page, Metric{Name: "q", Terms: []Series{{Families: []string{"q"}, Match: row.match, Across: Sum}}})
		require.Nil(t, fail)
		require.InDelta(t, row.want, s.value, 0, "%v", row.match)
	}
	_, fail := readOne(t, page, Metric{Name: "q", Terms: []Series{{Families: []string{"q"}, Match: []Matcher{{Label: "a", Value: "9"}}}}})
	require.ErrorContains(t, fail, `NotFound: no series of q matches [a="9"]`)
	require.Equal(t, `a!="9"`, Matcher{Label: "a", Value: "9", Not: true}.String())
}

func TestNamesOfConstants(t *testing.T) {
	require.Equal(t, "NoPods", NoPods.String())
	require.Equal(t, "Parse", Parse.String())
	require.Equal(t, "NoBaseline", NoBaseline.String())
	require.Equal(t, "Reason(99)", Reason(99).String())
	require.Equal(t, "Quantile", Quantile.String())
	require.Equal(t, "Min", Min.String())
	require.Equal(t, "Completed", Completed.String())
	require.Equal(t, "LlamaCPP", LlamaCPP.String())
	require.Equal(t, "Preemptions", Preemptions.String())
	require.True(t, Canceled.Fetch())
	require.True(t, Encoding.Fetch())
	require.False(t, None.Fetch())
	require.False(t, Parse.Fetch())
	require.False(t, TooMany.Fetch())
	require.Equal(t, "Read(5)", Read(5).String())
	require.Equal(t, "Aggregate(5)", Aggregate(5).String())
	require.Equal(t, "PodState(7)", PodState(7).String())
	require.Equal(t, "Engine(8)", Engine(8).String())
	require.Equal(t, "Signal(14)", Signal(14).String())
	require.EqualError(t, failf(Parse, "what").of("p", "m"), "pod p: metric m: Parse: what")
	require.EqualError(t, failf(Parse, "what").of("", ""), "Parse: what")
	require.EqualError(t, &Error{Reason: Parse}, "Parse")
}

// manyMetrics are n metrics of one family each.
func manyMetrics(n int) (all []Metric) {
	for i := range n {
		all = append(all, Named(fmt.Sprintf("m%d", i)))
	}
	return all
}
