package scrape

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRegressionBaselinesBelongToAPort: a snapshot gave the counters of one port to another: 49910/s where 10/s came.
func TestRegressionBaselinesBelongToAPort(t *testing.T) {
	clock := newTestClock()
	counts := []float64{1000, 500_000}
	var c Config
	var pod Pod
	for i := range counts {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "# TYPE c_total counter\nc_total %v\n", counts[i])
		})
		m := rateOf("c_total")
		m.Name = fmt.Sprint("m", i)
		pod.Host, m.Endpoint.Port = hostPort(t, url)
		c.Metrics = append(c.Metrics, m)
	}
	c.Now, pod.Name, pod.UID = clock.now, "p", "u"
	first := newScraper(t, c)
	first.Scrape(t.Context(), []Pod{pod})
	data, _ := first.Snapshot(1 << 20)
	second := newScraper(t, c)
	require.NoError(t, second.Restore(data))
	c.Metrics = c.Metrics[1:]
	c.Metrics[0].Endpoint = Endpoint{Port: first.plan.metrics[0].Endpoint.Port}
	moved := newScraper(t, c)
	require.NoError(t, moved.Restore(data))
	clock.advance(10 * time.Second)
	counts[0], counts[1] = counts[0]+100, counts[1]+100
	for _, s := range []*Scraper{first, second} {
		sweep := s.Scrape(t.Context(), []Pod{pod})
		require.Equal(t, []error{nil, nil}, sweep.Errors)
		require.InDelta(t, 10.0, sweep.Readings[0].Lower, 0)
		require.InDelta(t, 10.0, sweep.Readings[1].Lower, 0)
	}
	require.InDelta(t, 10.0, moved.Scrape(t.Context(), []Pod{pod}).Readings[0].Lower, 0, "what is read has another name")
}

// TestRegressionACorrectedClockIsNoRestart: a start time that moved by the correction of a clock counted all that a process had ever counted.
func TestRegressionACorrectedClockIsNoRestart(t *testing.T) {
	clock := newTestClock()
	pod := newFakePod(t, "p", "")
	s := newScraper(t, Config{Now: clock.now, Metrics: []Metric{
		rateOf("tokens_total"), {Name: "h", Terms: []Series{{Families: []string{"h"}, Read: Counts}}},
	}})
	for i, start := range []int64{-36000, -36000, -36003, -36003} {
		n := 100_000 + i
		pod.say(fmt.Sprintf("%s %d\n# TYPE h histogram\nh_bucket{le=\"1\"} %d\nh_bucket{le=\"+Inf\"} %[3]d\nh_sum 1\nh_count %[3]d\n# TYPE tokens_total counter\ntokens_total %d\n",
			startFamily, origin().Unix()+start, n, 3_600_000+150*i))
		sweep := s.Scrape(t.Context(), []Pod{pod.pod})
		if i == 0 || i == 2 {
			require.ErrorContains(t, sweep.Errors[0], "NoBaseline")
		} else {
			require.InDelta(t, 10, sweep.Readings[0].Lower, 0)
			require.LessOrEqual(t, sweep.Histograms[0].Counts[0], float64(i))
		}
		clock.advance(15 * time.Second)
	}
}

// TestRegressionAbsurdCountsAreNotAdded: one page with 1e300 swallowed what all pods counted later.
func TestRegressionAbsurdCountsAreNotAdded(t *testing.T) {
	clock := newTestClock()
	page := func(n float64) string {
		return fmt.Sprintf("# TYPE h histogram\nh_bucket{le=\"1\"} %v\nh_bucket{le=\"+Inf\"} %[1]v\nh_sum 1\nh_count %[1]v\n", n)
	}
	good, bad := newFakePod(t, "good", page(10)), newFakePod(t, "bad", page(0))
	mean := Metric{Name: "mean", Terms: []Series{{Families: []string{"h"}, Read: Mean}}}
	s := newScraper(t, Config{Now: clock.now, Metrics: []Metric{mean, {Name: "h", Terms: []Series{{Families: []string{"h"}, Read: Counts}}}}})
	s.Scrape(t.Context(), []Pod{good.pod, bad.pod})
	for i, n := range []float64{1e300, 1.7e308, 1 << 54} {
		clock.advance(15 * time.Second)
		bad.say(page(n))
		good.say(page(float64(20 + 10*i)))
		sweep := s.Scrape(t.Context(), []Pod{good.pod, bad.pod})
		require.Equal(t, []float64{float64(10 + 10*i), 0}, sweep.Histograms[0].Counts)
		require.EqualValues(t, 1, sweep.Histograms[0].Failed)
		require.NoError(t, sweep.Errors[0])
		require.EqualValues(t, 1, sweep.Readings[0].Failed)
	}
}

// TestRegressionPodsWaitOncePerSpread: the time that a pod waited for a free slot was added to the delay of all pods behind it: a sweep
// took the time of the pages and the spread.
func TestRegressionPodsWaitOncePerSpread(t *testing.T) {
	const page, spread = 20 * time.Millisecond, 600 * time.Millisecond
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(page) // a slow server
		fmt.Fprint(w, waitingPage(1))
	})
	var pods []Pod // of the first tenth of the spread as many as fill it, and one of the last
	for i, last := 0, false; len(pods) < int(spread/page) || !last; i++ {
		pod := Pod{Name: fmt.Sprint("p", i), URL: url + "/metrics"}
		switch delay := offset(&pod, spread); {
		case delay < spread/10 && len(pods) < int(spread/page), delay > spread*9/10 && !last:
			pods = append(pods, pod)
			last = last || delay > spread/2
		}
	}
	s := newScraper(t, Config{Interval: time.Minute, SweepTimeout: 50 * time.Second, Spread: spread, Concurrency: 1})
	begun := time.Now()
	require.EqualValues(t, len(pods), s.Scrape(t.Context(), pods).Readings[0].Values)
	require.Less(t, time.Since(begun), spread*3/2)
}

// TestRegressionFormerTokensAreRedacted: after a rotation a pod could show the token that it was sent before.
func TestRegressionFormerTokensAreRedacted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	var sent []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, sent[0])
	})
	var s *Scraper
	for i := range 4 {
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "token-%d-%s", i, strings.Repeat(string(rune('a'+i)), 20)), 0o600))
		if s == nil {
			s = newScraper(t, Config{TokenFile: file, AllowTokenOverHTTP: true})
		}
		err := s.Scrape(t.Context(), []Pod{{Name: "p", URL: url + "/metrics"}}).Pods[0].Values[0].Err
		require.ErrorContains(t, err, "[redacted]")
		require.NotContains(t, err.Error(), "aaaaaaaa")
	}
	require.Len(t, sent, 4)
	require.NotEqual(t, sent[0], sent[3])
}

// TestRegressionCertificatesShowNoControlCodes: the names of a certificate were shown as they are, in a log and a status.
func TestRegressionCertificatesShowNoControlCodes(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"a\x1b[2J\x1b]0;owned\x07\nlevel=error msg=forged"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	s := newScraper(t, Config{TLS: TLSConfig{ServerName: "vllm.example"}})
	text := s.Scrape(t.Context(), []Pod{{Name: "p", URL: server.URL + "/metrics"}}).Pods[0].Values[0].Err.Error()
	require.Contains(t, text, `a\x1b[2J\x1b]0;owned\a\nlevel=error msg=forged`)
	for _, hidden := range []string{"\x1b", "\x07", "\n"} {
		require.NotContains(t, text, hidden)
	}
	require.Equal(t, `é "\" \xff \ufffd`, visible("é \"\\\" \xff \\ufffd"))
}

// TestRegressionNamesBehindBlanks: a wanted line whose name came after 64 KiB of blanks was left out without a failure.
func TestRegressionNamesBehindBlanks(t *testing.T) {
	const head = "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{engine=\"0\"} 8\n"
	for _, blanks := range []int{65_530, 65_536, 70_000, 200_000} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, head, strings.Repeat(" ", blanks), "vllm:num_requests_waiting{engine=\"1\"} 100\n")
		})
		sweep := newScraper(t, Config{}).Scrape(t.Context(), []Pod{{Name: "p", URL: url + "/metrics"}})
		require.ErrorContains(t, sweep.Pods[0].Values[0].Err, "a line longer than 64 KiB", blanks)
	}
}

// TestRegressionQueriesNeedAPath: the query of a static target without a path was dropped.
func TestRegressionQueriesNeedAPath(t *testing.T) {
	for _, query := range []string{"?name[]=x", "?"} {
		err := newScraper(t, Config{}).Scrape(t.Context(), []Pod{{Name: "p", URL: "http://127.0.0.1:1" + query}}).Pods[0].Values[0].Err
		require.ErrorContains(t, err, "must have a path if it has a query")
	}
}

// TestRegressionFieldsOfLess: a wrong field of less was named as one of sum.
func TestRegressionFieldsOfLess(t *testing.T) {
	m := Metric{Name: "x", Terms: []Series{{Families: []string{"h"}, Read: Counts}}, Sum: []Series{{Families: []string{"a_total"}, Read: Rate}}, Less: []Series{{Families: []string{"b"}}}}
	require.EqualError(t, m.Validate(), "less[0].read: Value: must be Rate")
}

// TestRegressionWhatIsSubtractedRestartsToo: after a restart in which the cached tokens had passed their old count already, only the
// difference was subtracted: 50,000 tokens where 10,000 were computed.
func TestRegressionWhatIsSubtractedRestartsToo(t *testing.T) {
	clock := newTestClock()
	page := func(requests, tokens, cached int) string {
		return fmt.Sprintf("# TYPE h histogram\nh_bucket{le=\"1\"} %d\nh_bucket{le=\"+Inf\"} %[1]d\nh_sum 1\nh_count %[1]d\n# TYPE tokens_total counter\ntokens_total %d\n# TYPE cache_total counter\ncache_total %d\n", requests, tokens, cached)
	}
	pod := newFakePod(t, "p", page(100, 100_000, 40_000))
	s := newScraper(t, Config{Metrics: countedMetrics(), Now: clock.now})
	s.Scrape(t.Context(), []Pod{pod.pod})
	clock.advance(15 * time.Second)
	pod.say(page(50, 60_000, 50_000))
	sweep := s.Scrape(t.Context(), []Pod{pod.pod})
	require.InDelta(t, 10_000, sweep.Histograms[1].Sum, 0)
	clock.advance(15 * time.Second)
	pod.say(page(60, 70_000, 52_000))
	require.InDelta(t, 18_000, s.Scrape(t.Context(), []Pod{pod.pod}).Histograms[1].Sum, 0)
}

// TestRegressionServersThatTakeTurnsAtAnAddress: with each turn back to the one that started last, all that it had ever counted was new,
// as a restart may be that late. So a hundred thousand requests came with every second page.
func TestRegressionServersThatTakeTurnsAtAnAddress(t *testing.T) {
	for _, apart := range []int64{5, 7200} {
		clock, pod := newTestClock(), newFakePod(t, "p", "")
		config := Config{Now: clock.now, Metrics: []Metric{rateOf("c_total"), {Name: "h", Terms: []Series{{Families: []string{"h"}, Read: Counts}}}}}
		s := newScraper(t, config)
		total := 0.0
		for i := range 8 {
			start, n := origin().Unix()-36000+apart*int64(i%2), 100_000+i
			pod.say(fmt.Sprintf("%s %d\n# TYPE h histogram\nh_bucket{le=\"1\"} %d\nh_bucket{le=\"+Inf\"} %[3]d\nh_sum 1\nh_count %[3]d\n# TYPE c_total counter\nc_total %[3]d\n",
				startFamily, start, n))
			sweep := s.Scrape(t.Context(), []Pod{pod.pod})
			if i >= 2 { // the first turn may be a restart
				require.ErrorContains(t, sweep.Errors[0], "NoBaseline", "%d s apart, page %d", apart, i)
				require.InDelta(t, total, sweep.Histograms[0].Counts[0], 0)
			} else if len(sweep.Histograms[0].Counts) > 0 {
				total = sweep.Histograms[0].Counts[0]
			}
			clock.advance(15 * time.Second)
			if i == 4 {
				data, left := s.Snapshot(1 << 20)
				require.Zero(t, left)
				s = newScraper(t, config)
				require.NoError(t, s.Restore(data))
				total = 0 // counts are those since the first sweep
			}
		}
	}
}

// TestRegressionAScraperKeepsItsConfig: it read its matchers from the slices of its Config, so that a program that makes one scraper
// for each model of the same Metric read the last model with all of them.
func TestRegressionAScraperKeepsItsConfig(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE queue gauge\nqueue{model=\"a\",rank=\"0\"} 3\nqueue{model=\"a\",rank=\"1\"} 4\nqueue{model=\"b\",rank=\"0\"} 50\n")
	})
	term := Series{Families: []string{"queue"}, Match: []Matcher{{Label: "model", Value: "a"}}, GroupBy: []string{"rank"}, Across: Sum}
	m := Metric{Name: "queue", Terms: []Series{term}}
	c := Config{Metrics: []Metric{m}}
	a := newScraper(t, c)

	m.Terms[0].Match[0].Value = "b"
	m.Terms[0].Families[0], m.Terms[0].GroupBy[0] = "other", "model"
	m.Terms[0], c.Metrics[0].Name = Series{}, "other"
	sweep := a.Scrape(t.Context(), []Pod{{Name: "p", URL: url}})
	require.NoError(t, sweep.Err())
	require.Equal(t, "queue", sweep.Readings[0].Metric)
	require.InDelta(t, 7, sweep.Readings[0].Lower, 0)
}
