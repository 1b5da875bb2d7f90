package history_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/internal/simhistory"
)

// A scraped is a pod by the second: when it was created, scraped for the first and for the last time, and began anew within (0 is never), from
// the start of the recording.
type scraped struct {
	name                       string
	created, first, last, anew int
	began                      int // its process, after its creation
	finished                   int // up to some time, and the sums of these
	prompts, answers, ttft     float64
	counts                     [3][4]float64 // likewise, in buckets
}

func bucketBounds() []float64 { return []float64{200, 500, 1000} }

// count counts what has finished up to a second: a request every seven, of lengths that change.
func (s *scraped) count(upTo int) {
	if s.anew > 0 && upTo > s.anew {
		*s = scraped{name: s.name, created: s.created, first: s.first, last: s.last, began: s.anew - s.created}
	}
	for s.created+s.began+7*(s.finished+1) <= upTo {
		s.finished++
		n := s.finished
		prompt, answer, ttft := float64(100+n*37%1300), float64(50+n*53%700), float64(100+n*11%900)
		s.prompts, s.answers, s.ttft = s.prompts+prompt, s.answers+answer, s.ttft+ttft/1000
		for i, x := range []float64{prompt, answer, ttft} {
			for k, end := range append(bucketBounds(), math.Inf(1)) {
				if x <= end {
					s.counts[i][k]++
				}
			}
		}
	}
}

// answered is what Prometheus has of pods that are scraped every 15 s, and of one that is always there and idle.
func answered(kubernetes bool, length time.Duration, pods ...scraped) *simhistory.Recording {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	r := &simhistory.Recording{Engine: history.VLLM, Start: start, End: start.Add(length), Scrape: 15 * time.Second}
	for _, p := range append(pods, scraped{name: "idle", created: math.MaxInt / 2, first: -7200, last: int(length / time.Second)}) {
		by := map[string]*simhistory.Series{}
		for at := p.first; at <= p.last; at += 15 {
			if at < 0 {
				continue
			}
			p.count(at)
			put := func(s history.Signal, part history.Part, name string, x float64, labels ...string) {
				key := name + fmt.Sprint(labels)
				one := by[key]
				if one == nil {
					one = &simhistory.Series{Signal: s, Part: part, Name: name, Labels: map[string]string{"pod": p.name, "namespace": "n"}}
					for i := 0; i < len(labels); i += 2 {
						one.Labels[labels[i]] = labels[i+1]
					}
					by[key] = one
					r.Series = append(r.Series, one)
				}
				one.At, one.Values = append(one.At, start.Add(time.Duration(at)*time.Second)), append(one.Values, x)
			}
			put(history.Waiting, history.Whole, "vllm:num_requests_waiting", 0)
			put(history.Running, history.Whole, "vllm:num_requests_running", 0)
			for _, h := range []struct {
				signal history.Signal
				name   string
				sum    float64
				counts [4]float64
				unit   float64
			}{
				{history.PromptTokens, "vllm:request_prompt_tokens", p.prompts, p.counts[0], 1},
				{history.GenerationTokens, "vllm:request_generation_tokens", p.answers, p.counts[1], 1},
				{history.TTFT, "vllm:time_to_first_token_seconds", p.ttft, p.counts[2], 0.001},
			} {
				put(h.signal, history.Sum, h.name+"_sum", h.sum)
				put(h.signal, history.Count, h.name+"_count", float64(p.finished))
				for k, end := range bucketBounds() {
					put(h.signal, history.Bucket, h.name+"_bucket", h.counts[k], "le", fmt.Sprint(end*h.unit))
				}
				put(h.signal, history.Bucket, h.name+"_bucket", float64(p.finished), "le", "+Inf")
			}
			if kubernetes && p.name != "idle" {
				put(history.PodCreated, history.Whole, "kube_pod_created", float64(start.Unix())+float64(p.created))
			}
		}
	}
	return r
}

// everySecond is how many seconds are between two rows: one, but where that takes minutes.
func everySecond() int {
	if long.Slow() {
		return 11
	}
	return 1
}

// TestWhatIsKnownDoesNotHangOnWhenAPodIsScraped: pods that live for half an hour, for six minutes, for a minute and for one scrape come at
// each second of the five minutes between two values of a bucket. All that they had counted by their last scrape is known, once.
// Where the first scrape was at such a value, the means of the hour were unknown; where the last one was after it, what came in between was not
// counted, and of pods that lived between two values nothing was.
func TestWhatIsKnownDoesNotHangOnWhenAPodIsScraped(t *testing.T) {
	step := everySecond()
	for _, kubernetes := range []bool{true, false} {
		for second := 0; second < 300; second += step {
			begin := 1200 + second
			pods := []scraped{
				{name: "long", created: begin, first: begin + 14, last: begin + 14 + 15*121},
				{name: "short", created: begin + 40, first: begin + 50, last: begin + 50 + 15*24},
				{name: "brief", created: begin + 600, first: begin + 603, last: begin + 603 + 60},
				{name: "once", created: begin + 900, first: begin + 914, last: begin + 914},
				{name: "over the hour", created: begin + 2300, first: begin + 2312, last: begin + 2312 + 15*9},
			}
			var finished, prompts, answers, ttft float64
			for i := range pods {
				p := pods[i]
				p.count(p.last)
				finished, prompts, answers, ttft = finished+float64(p.finished), prompts+p.prompts, answers+p.answers, ttft+p.ttft
			}
			f := reduced(t, dumped(t, answered(kubernetes, 75*time.Minute, pods...)))
			says := fmt.Sprintf("second %d, Kubernetes asked: %t", second, kubernetes)

			came, known := f.Requests()
			require.InDelta(t, 1, known, 1e-9, says)
			require.InDelta(t, finished, came, 1e-6, says)
			for _, c := range []struct {
				name string
				of   func(*history.Span) history.Mixture
				sum  float64
			}{
				{"prompts", func(s *history.Span) history.Mixture { return s.Prompts }, prompts},
				{"answers", func(s *history.Span) history.Mixture { return s.Answers }, answers},
				{"first tokens", func(s *history.Span) history.Mixture { return s.TTFT }, ttft},
			} {
				n, sum := 0.0, 0.0
				for i := range f.Spans {
					if m := c.of(&f.Spans[i]); m.Total() > 0 {
						n += m.Total()
						sum += m.Total() * m.Mean()
					}
				}
				require.InDelta(t, finished, n, 1e-6, "%s, %s", c.name, says)
				require.InEpsilon(t, c.sum, sum, 1e-9, "%s, %s", c.name, says)
			}
			firsts := 0.0
			for i := range f.Pods {
				for _, n := range f.Pods[i].Firsts {
					if !math.IsNaN(float64(n)) {
						firsts += float64(n)
					}
				}
			}
			require.InDelta(t, finished, firsts, 1e-3, says)
		}
	}
}

// TestWhatIsKnownOfAPodThatBeginsAnew at each second of five minutes: of the lengths what came since the last value of a bucket before is lost, no
// more and nothing is there twice, and means are known. What came is lost between two scrapes only.
func TestWhatIsKnownOfAPodThatBeginsAnew(t *testing.T) {
	for second := 0; second < 300; second += everySecond() {
		p := scraped{name: "anew", created: 1200, first: 1209, last: 1209 + 15*121, anew: 2100 + second}
		before, after := p, p
		before.count(p.anew - (p.anew-p.first)%15)
		after.count(p.last)
		f := reduced(t, dumped(t, answered(true, 75*time.Minute, p)))
		require.Equal(t, 1, f.Repairs.Restarts)
		came, _ := f.Requests()
		require.InDelta(t, before.finished+after.finished, came, 1e-6, "second %d", second)
		n := 0.0
		for i := range f.Spans {
			if m := f.Spans[i].Prompts; m.Total() > 0 {
				n += m.Total()
				require.False(t, math.IsNaN(m.Mean()), "second %d", second)
			}
		}
		require.LessOrEqual(t, n, float64(before.finished+after.finished), "second %d", second)
		require.GreaterOrEqual(t, n, float64(before.finished+after.finished-300/7-1), "second %d", second)
	}
}

// TestRegressionACounterThatBeginsAnewAlone: where first tokens were counted anew and nothing else was, all answers that there ever
// were counted as requests of that moment.
func TestRegressionACounterThatBeginsAnewAlone(t *testing.T) {
	d := hour()
	d.Series = nil
	serve(d, "a", 0, func(i int) float64 { return 100_000 + 3*float64(i) })
	firsts := history.Series{Signal: history.TTFT, Part: history.Count, Family: "vllm:time_to_first_token_seconds_count", Pod: "a"}
	for i := range d.Steps() {
		n := 100_000 + 3*float64(i)
		if i >= 120 {
			n = 3 * float64(i-119)
		}
		firsts.Values = append(firsts.Values, n)
	}
	d.Series = append(d.Series, firsts)
	for i, n := range reduced(t, d).Arrivals {
		require.InDelta(t, 3, n, 1e-9, "%d", i)
	}
}
