package history_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/internal/long"
)

// A lived is a pod that was there once: what it was called, when it was created and ready, in seconds from the start of the history, and the
// steps of its first and last scrape.
type lived struct {
	pod            string
	created, ready int
	first, last    int
	finished       func(i int) float64 // by each scrape
	skipped        func(i int) bool    // scrapes that are missing; nil: none
	until          int                 // buckets have no value from this step on; 0: they have
}

// told says how Kubernetes tells of a pod.
type told struct {
	uid  bool // its series have one; without it the next pod of the name goes on in the same series
	time bool // kube_pod_status_ready_time is there
}

// stale is how many steps a value of Kubernetes stands after its pod is gone: last_over_time of a minute.
const stale = 3

// add adds a pod to a dump. Series of the same name and labels go on.
func (l lived) add(d *dumping, k told, address string) {
	step := int(time.Duration(d.Step) / time.Second)
	labels := map[string]string(nil)
	if k.uid {
		labels = map[string]string{"uid": fmt.Sprint(l.created)}
	}
	begin := float64(d.Start.Unix())
	shown, gone := max(0, (l.created+step)/step), min(d.Steps(), l.last+stale+1)
	put(d, "", history.Series{Signal: history.PodCreated, Family: "kube_pod_created", Pod: l.pod, Labels: labels}, shown, gone, func(int) float64 { return begin + float64(l.created) })
	put(d, "", history.Series{Signal: history.PodReady, Family: "kube_pod_status_ready", Pod: l.pod, Labels: labels}, shown, gone, func(i int) float64 {
		if i*step >= l.ready {
			return 1
		}
		return 0
	})
	if k.time {
		from := max(0, (l.ready+step-1)/step)
		put(d, "", history.Series{Signal: history.PodReadyTime, Family: "kube_pod_status_ready_time", Pod: l.pod, Labels: labels}, from, gone, func(int) float64 { return begin + float64(l.ready) })
	}
	scraped := func(of func(i int) float64) func(i int) float64 {
		return func(i int) float64 {
			if i < l.first || i > l.last || i != l.first && i != l.last && l.skipped != nil && l.skipped(i) {
				return nan
			}
			return of(i)
		}
	}
	for _, s := range []struct {
		signal history.Signal
		part   history.Part
		family string
		value  func(i int) float64
	}{
		{history.Waiting, history.Whole, "vllm:num_requests_waiting", func(i int) float64 { return float64((i - l.first) % 3) }},
		{history.Running, history.Whole, "vllm:num_requests_running", func(i int) float64 { return float64((i + l.last) % 7) }},
		{history.KVCacheUsage, history.Whole, "vllm:kv_cache_usage_perc", func(i int) float64 { return float64(i%7) / 10 }},
		{history.TPOT, history.Sum, "vllm:inter_token_latency_seconds_sum", func(i int) float64 { return 0.02 * 100 * l.finished(i) }},
		{history.TPOT, history.Count, "vllm:inter_token_latency_seconds_count", func(i int) float64 { return 100 * l.finished(i) }},
		{history.PromptTokens, history.Sum, "vllm:request_prompt_tokens_sum", func(i int) float64 { return 500 * l.finished(i) }},
		{history.PromptTokens, history.Count, "vllm:request_prompt_tokens_count", l.finished},
		{history.GenerationTokens, history.Sum, "vllm:request_generation_tokens_sum", func(i int) float64 { return 60 * l.finished(i) }},
		{history.GenerationTokens, history.Count, "vllm:request_generation_tokens_count", l.finished},
	} {
		put(d, address, history.Series{Signal: s.signal, Part: s.part, Family: s.family, Pod: l.pod}, l.first, l.last+1, scraped(s.value))
	}
	// What is asked for every 20 steps is the last of these.
	latest := func(of func(i int) float64) func(i int) float64 {
		return func(i int) float64 {
			for k := i; k > i-20; k-- {
				if x := scraped(of)(k); !math.IsNaN(x) {
					return x
				}
			}
			return nan
		}
	}
	from, upTo := (l.first+19)/20*20, min(d.Steps(), l.last+20)
	blocks := map[string]string{"block_size": "16", "num_gpu_blocks": fmt.Sprint(1000 + l.created)}
	put(d, address, history.Series{Signal: history.CacheBlocks, Family: "vllm:cache_config_info", Pod: l.pod, Every: 20, Labels: blocks}, from, upTo, latest(func(int) float64 { return 1 }))
	if l.until > 0 {
		upTo = min(upTo, l.until)
	}
	for _, s := range []history.Signal{history.PromptTokens, history.GenerationTokens} {
		family := map[history.Signal]string{history.PromptTokens: "vllm:request_prompt_tokens_bucket", history.GenerationTokens: "vllm:request_generation_tokens_bucket"}[s]
		for k, le := range []string{"100", "1000", "+Inf"} {
			put(d, address, history.Series{Signal: s, Part: history.Bucket, Family: family, Pod: l.pod, Every: 20, Labels: map[string]string{"le": le}}, from, upTo,
				latest(func(i int) float64 { return math.Floor(l.finished(i) * float64(k+1) / 3) }))
		}
	}
}

// A dumping is a dump with the addresses of its series, which are not in it.
type dumping struct {
	*history.Dump

	addresses []string
}

// put adds values to the series that is like one, or begins it.
func put(d *dumping, address string, s history.Series, from, to int, value func(i int) float64) {
	every := max(1, s.Every)
	i := -1
	for k := range d.Series {
		if o := &d.Series[k]; o.Signal == s.Signal && o.Part == s.Part && o.Pod == s.Pod && maps.Equal(o.Labels, s.Labels) && d.addresses[k] == address {
			i = k
		}
	}
	for k := from; k < to; k += every {
		x := value(k)
		if math.IsNaN(x) {
			continue
		}
		if i < 0 {
			i, s.From = len(d.Series), k
			d.Series, d.addresses = append(d.Series, s), append(d.addresses, address)
		}
		into := &d.Series[i]
		for len(into.Values) <= (k-into.From)/every {
			into.Values = append(into.Values, nan)
		}
		into.Values[(k-into.From)/every] = x
	}
}

// empty is a dump without series, of so many steps of 15 s.
func empty(steps int) *dumping {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	d := &history.Dump{Version: 1, Engine: history.VLLM, Start: start, End: start.Add(time.Duration(steps-1) * 15 * time.Second), Step: history.Seconds(15 * time.Second)}
	return &dumping{Dump: d}
}

// counting is a counter that is at zero by a step, and goes up by so much a step.
func counting(from int, by float64) func(i int) float64 {
	return func(i int) float64 { return by * float64(i-from) }
}

// forms are the ways in which Prometheus has a pod that comes back: at a new address in new series, or in those that there were.
func forms(t *testing.T, test func(t *testing.T, k told, address func(life int) string)) {
	t.Helper()
	for _, uid := range []bool{true, false} {
		for _, ofTime := range []bool{true, false} {
			for _, moves := range []bool{true, false} {
				t.Run(fmt.Sprintf("uid=%t time=%t moves=%t", uid, ofTime, moves), func(t *testing.T) {
					test(t, told{uid, ofTime}, func(life int) string {
						if moves {
							return fmt.Sprint(life)
						}
						return "0"
					})
				})
			}
		}
	}
}

// TestPodThatComesBackUnderItsNameStartsAgain: a pod of a StatefulSet is deleted and made again after half an hour. It had one life:
// one start, an hour and a half in which it was ready, and a gap.
func TestPodThatComesBackUnderItsNameStartsAgain(t *testing.T) {
	forms(t, func(t *testing.T, k told, address func(int) string) {
		t.Helper()
		d := empty(361)
		lived{pod: "a-0", created: -9000, ready: -8000, first: 0, last: 360, finished: counting(-100, 1)}.add(d, k, "a")
		lived{pod: "a-1", created: 300, ready: 400, first: 27, last: 100, finished: counting(26, 2)}.add(d, k, address(1))
		lived{pod: "a-1", created: 3305, ready: 3600, first: 241, last: 350, finished: counting(240, 5)}.add(d, k, address(2))
		f := reduced(t, d.Dump)

		var took []time.Duration
		for _, s := range f.Starts {
			require.Equal(t, "a-1", s.Pod)
			took = append(took, s.Took())
		}
		want := []time.Duration{100 * time.Second, 295 * time.Second}
		if !k.time { // by the first value that says so
			want = []time.Duration{105 * time.Second, 295 * time.Second}
		}
		require.Equal(t, want, took)

		require.Equal(t, 3, f.Repairs.Pods)
		require.Zero(t, f.Repairs.Gaps)
		require.Zero(t, f.Repairs.Restarts)
		require.Zero(t, f.Repairs.Spread)
		require.Equal(t, 2.0, f.Ready[90])
		require.Equal(t, 1.0, f.Ready[150], "away")
		require.Equal(t, 2.0, f.Ready[300])
		finished := 0.0
		for _, p := range f.Pods {
			if p.Name == "a-1" {
				for _, n := range p.Tokens {
					if !math.IsNaN(float64(n)) {
						finished += float64(n) / 100
					}
				}
			}
		}
		require.InDelta(t, 2*74+5*110, finished, 1e-6, "from zero, each time")
		share := 0.0
		for i := 105; i < 235; i++ {
			share += f.Arrivals[i]
		}
		require.InDelta(t, 130, share, 10, "of a-0 alone: nothing is spread over the time that a-1 was away")
		for i := range f.Spans {
			require.InDelta(t, 500, f.Spans[i].Prompts.Mean(), 1e-6)
		}
	})
}

// TestCountersOfTheNextLifeAreNotOnesThatGoOn: a pod that comes back and has passed its old counts by its first scrape had counted the
// difference only.
func TestCountersOfTheNextLifeAreNotOnesThatGoOn(t *testing.T) {
	forms(t, func(t *testing.T, k told, address func(int) string) {
		t.Helper()
		d := empty(241)
		lived{pod: "a-0", created: 100, ready: 140, first: 10, last: 30, finished: counting(9, 1)}.add(d, k, address(1))
		lived{pod: "a-0", created: 1000, ready: 1400, first: 100, last: 200, finished: func(i int) float64 { return 50 + float64(i-100) }}.add(d, k, address(2))
		f := reduced(t, d.Dump)
		finished := 0.0
		for _, p := range f.Pods {
			for _, n := range p.Tokens {
				finished += float64(n) / 100
			}
		}
		require.InDelta(t, 21+150, finished, 1e-6)
	})
}

// TestAFleetThatIsScaledToNoneAndBack: no request comes while none is asked for, and none of the time is a gap.
func TestAFleetThatIsScaledToNoneAndBack(t *testing.T) {
	forms(t, func(t *testing.T, k told, address func(int) string) {
		t.Helper()
		d := empty(481)
		for life, at := range []int{0, 160, 320} {
			for _, pod := range []string{"a-0", "a-1"} {
				lived{pod: pod, created: at*15 + 20, ready: at*15 + 200, first: at + 15, last: at + 100, finished: counting(at+14, 1)}.add(d, k, pod+address(life))
			}
		}
		spec := make(history.Values, 481)
		for i := range spec {
			if i%160 > 0 && i%160 <= 101 {
				spec[i] = 2
			}
		}
		d.Series = append(d.Series, history.Series{Signal: history.SpecReplicas, Family: "kube_statefulset_replicas", Values: spec})
		f := reduced(t, d.Dump)
		require.Len(t, f.Starts, 6)
		require.Zero(t, f.Repairs.Gaps)
		for _, i := range []int{105, 150, 265, 310, 425} {
			require.Zero(t, f.Arrivals[i], "%d", i)
			require.False(t, f.Ready[i] > 0, "%d", i)
		}
		sum := 0.0
		for _, p := range f.Pods {
			for _, n := range p.Tokens {
				sum += float64(n) / 100
			}
		}
		require.InDelta(t, 6*86, sum, 1e-6)
	})
}

// TestLastScrapeWithinTheStepOfTheNextCreation: what is scraped in the step in which the next pod is created is of the pod before, unless a
// counter fell: of the next, it would count what the pod before had done in its life once more.
func TestLastScrapeWithinTheStepOfTheNextCreation(t *testing.T) {
	forms(t, func(t *testing.T, k told, address func(int) string) {
		t.Helper()
		for _, late := range []int{0, 1} { // scraped up to a step after it, by a clock that is ahead
			d := empty(241)
			lived{pod: "a-0", created: 10, ready: 90, first: 6, last: 100, finished: counting(5, 40)}.add(d, k, address(1))
			lived{pod: "a-0", created: (100-late)*15 - 3, ready: 1700, first: 115, last: 200, finished: counting(114, 1)}.add(d, k, address(2))
			f := reduced(t, d.Dump)
			require.Len(t, f.Pods, 2)
			require.Len(t, f.Pods[0].Tokens, 95)
			require.InDelta(t, 40*95+86, total(f), 16) // that are in flight at the ends
			require.Zero(t, f.Repairs.Restarts)
		}
		// One that starts within a step, as where a step is an hour.
		d := empty(241)
		lived{pod: "a-0", created: 10, ready: 90, first: 6, last: 99, finished: counting(5, 40)}.add(d, k, address(1))
		lived{pod: "a-0", created: 100*15 - 10, ready: 100*15 - 2, first: 100, last: 200, finished: counting(99, 1)}.add(d, k, address(2))
		f := reduced(t, d.Dump)
		require.Len(t, f.Pods, 2)
		require.Len(t, f.Pods[1].Tokens, 101)
		require.InDelta(t, 40*94+101, total(f), 16) // that are in flight at the ends
		require.Zero(t, f.Repairs.Restarts)
	})
}

// TestARestartOfAContainerIsNoNewLife: the creation is that of the pod.
func TestARestartOfAContainerIsNoNewLife(t *testing.T) {
	d := empty(241)
	lived{pod: "a-0", created: 10, ready: 90, first: 6, last: 200, finished: func(i int) float64 { return float64((i - 5) % 50) }}.add(d, told{uid: true}, "0")
	f := reduced(t, d.Dump)
	require.Len(t, f.Pods, 1)
	require.Len(t, f.Starts, 1)
	require.Equal(t, 3, f.Repairs.Restarts)
}

// TestValuesBeforeTheCreationAreOfAnEarlierLife: of that one nothing is known but its values.
func TestValuesBeforeTheCreationAreOfAnEarlierLife(t *testing.T) {
	d := empty(241)
	lived{pod: "a-0", created: -5000, ready: -4000, first: 0, last: 60, finished: counting(-1000, 1)}.add(d, told{}, "0")
	d.Series = slices.DeleteFunc(d.Series, func(s history.Series) bool { return s.Signal == history.PodCreated || s.Signal == history.PodReady })
	d.addresses = d.addresses[2:]
	lived{pod: "a-0", created: 1200, ready: 1500, first: 100, last: 240, finished: counting(99, 1)}.add(d, told{}, "0")
	f := reduced(t, d.Dump)
	require.Len(t, f.Pods, 2)
	require.Len(t, f.Starts, 1)
	require.InDelta(t, 60+141, total(f), 10)
}

// TestFillerKeepsTheUID of what Kubernetes says of a pod, so that each life has series of its own.
func TestFillerKeepsTheUID(t *testing.T) {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	o := history.Options{Workload: "a"}
	f, err := history.NewFiller(history.VLLM, o, start, start.Add(time.Minute))
	require.NoError(t, err)
	queries, err := history.Queries(history.VLLM, o)
	require.NoError(t, err)
	kept := 0
	for _, q := range queries {
		if q.Signal != history.PodCreated && q.Signal != history.PodReady && q.Signal != history.PodReadyTime {
			require.NotContains(t, q.Labels, "uid")
			continue
		}
		kept++
		family := map[history.Signal]string{history.PodCreated: "kube_pod_created", history.PodReady: "kube_pod_status_ready", history.PodReadyTime: "kube_pod_status_ready_time"}[q.Signal]
		labels := map[string]string{"__name__": family, "pod": "a-0", "uid": "f00d", "instance": "10.1.2.3:8080"}
		require.NoError(t, f.Add(&q, labels, 1, func(int) (int64, float64) { return start.UnixMilli(), 1 }))
	}
	require.Equal(t, 3, kept)
	d, err := f.Dump()
	require.NoError(t, err)
	for _, s := range d.Series {
		require.Equal(t, map[string]string{"uid": "f00d"}, s.Labels)
	}
}

// TestReadinessIsThatOfTheLife: what Kubernetes says of the pod before stands for some steps, and one that was never ready is not as
// soon as the next one of its name is.
func TestReadinessIsThatOfTheLife(t *testing.T) {
	took := func(d *dumping) (all []time.Duration) {
		for _, s := range reduced(t, d.Dump).Starts {
			all = append(all, s.Took())
		}
		return all
	}
	forms(t, func(t *testing.T, k told, address func(int) string) {
		t.Helper()
		d := empty(241)
		lived{pod: "a-0", created: 1005, ready: 1 << 30, first: 80, last: 99, finished: counting(79, 1)}.add(d, k, address(1))
		lived{pod: "a-0", created: 1495, ready: 1530, first: 102, last: 200, finished: counting(101, 1)}.add(d, k, address(2))
		require.Equal(t, []time.Duration{195 * time.Second, 35 * time.Second}, took(d), "of the first, by its first scrape")
	})
	// Two servers ask Kubernetes, of which one is late.
	d := empty(241)
	lived{pod: "a-0", created: 105, ready: 300, first: 20, last: 99, finished: counting(19, 1)}.add(d, told{}, "")
	lived{pod: "a-0", created: 1495, ready: 1700, first: 115, last: 200, finished: counting(114, 1)}.add(d, told{}, "")
	for _, s := range slices.Clone(d.Series) {
		if s.Signal == history.PodCreated || s.Signal == history.PodReady {
			s.From += 2
			d.Series = append(d.Series, s)
		}
	}
	require.Equal(t, []time.Duration{225 * time.Second, 245 * time.Second}, took(d))
}

// TestAStartOfLongBeforeIsNone: a pod that was created more than an hour before the history and was first seen ready in it was ready before, or
// did not take so long to start.
func TestAStartOfLongBeforeIsNone(t *testing.T) {
	for created, starts := range map[int]int{-3600: 1, -3601: 0} {
		d := empty(121)
		lived{pod: "a-0", created: created, ready: 200, first: 14, last: 120, finished: counting(13, 1)}.add(d, told{true, true}, "0")
		require.Len(t, reduced(t, d.Dump).Starts, starts, created)
	}
}

// TestAPodThatWasReadyWhenKubernetesWasAskedHasNoStart: since when it was is not known.
func TestAPodThatWasReadyWhenKubernetesWasAskedHasNoStart(t *testing.T) {
	for upTo, starts := range map[int]int{22: 1, 40: 0} { // it is ready from step 23 on
		d := empty(121)
		lived{pod: "a-0", created: 310, ready: 340, first: 40, last: 120, finished: counting(39, 1)}.add(d, told{}, "0")
		cut(d.Dump, 0, upTo, func(s *history.Series) bool { return s.Signal == history.PodReady })
		require.Len(t, reduced(t, d.Dump).Starts, starts, upTo)
	}
}

// TestALifeThatHasCountedNothing: some servers begin a counter with their first request. What came to such a life is not known, and the
// rest is not refused for it.
func TestALifeThatHasCountedNothing(t *testing.T) {
	forms(t, func(t *testing.T, k told, address func(int) string) {
		t.Helper()
		d := empty(241)
		lived{pod: "a-0", created: 10, ready: 90, first: 6, last: 100, finished: counting(5, 1)}.add(d, k, address(1))
		lived{pod: "a-0", created: 1800, ready: 2200, first: 150, last: 200, finished: func(int) float64 { return nan }}.add(d, k, address(2))
		f := reduced(t, d.Dump)
		require.Len(t, f.Pods, 2)
		require.Len(t, f.Starts, 2)
		require.InDelta(t, 95, total(f), 8)
		require.True(t, math.IsNaN(f.Arrivals[170]))
	})
}

// TestLivesAreAsPodsWithNamesOfTheirOwn: pods that come back under one name make the same fleet, number by number, as a Deployment's, which
// have a name each, and of which the buckets have no value for minutes in which the next one came: that is of the next one where they are under
// one name.
func TestLivesAreAsPodsWithNamesOfTheirOwn(t *testing.T) {
	long.Skip(t)
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		var all [][]lived                        // by name
		for range 1 + random.IntN(3) {
			all = append(all, randomLives(random, 2000))
		}
		forms(t, func(t *testing.T, k told, address func(int) string) {
			t.Helper()
			apart, together := empty(2001), empty(2001)
			starts := 0
			for name, lives := range all {
				for n, l := range lives {
					l.pod = fmt.Sprintf("a-%d-%03d", name, n)
					alone := l
					if n+1 < len(lives) {
						alone.until = lives[n+1].first
					}
					alone.add(apart, k, l.pod)
					l.pod = fmt.Sprintf("a-%d", name)
					l.add(together, k, l.pod+"-"+address(n))
					if l.created >= -3600 && (k.time || l.ready > 0 && l.ready > (l.created+15)/15*15) {
						starts++
					}
				}
			}
			want, got := reduced(t, apart.Dump), reduced(t, together.Dump)
			require.Len(t, got.Starts, starts, "seed %d", seed)
			for i := range want.Starts {
				want.Starts[i].Pod = got.Starts[i].Pod
			}
			require.Equal(t, want.Starts, got.Starts)
			require.Len(t, got.Pods, len(want.Pods))
			for i := range want.Pods {
				want.Pods[i].Name = got.Pods[i].Name
				if math.IsNaN(got.Pods[i].KVTokens) { // lives of minutes, after another
					got.Pods[i].KVTokens = want.Pods[i].KVTokens
				}
			}
			for _, c := range [][2]any{{want.Pods, got.Pods}, {want.Arrivals, got.Arrivals}, {want.Ready, got.Ready}, {lengths(want), lengths(got)}} {
				a, b := fmt.Sprint(c[0]), fmt.Sprint(c[1]) // NaN is NaN
				n := 0
				for n < min(len(a), len(b)) && a[n] == b[n] {
					n++
				}
				require.True(t, a == b, "seed %d: %.300s\n%.300s", seed, a[max(0, n-100):], b[max(0, n-100):])
			}
			require.Equal(t, want.Repairs, got.Repairs)
			require.Equal(t, want.Notes, got.Notes)
		})
	}
}

// lengths are how many prompts and answers each bucket has.
func lengths(f *history.Fleet) (all [2][3]float64) {
	for i := range f.Spans {
		for k, m := range []history.Mixture{f.Spans[i].Prompts, f.Spans[i].Answers} {
			for _, c := range m {
				for b, n := range c.Counts {
					all[k][b] += n
				}
			}
		}
	}
	return all
}

// randomLives are some of one name within so many steps, the first of which may have been there before. Each is long enough for two
// values of its buckets, of which the first may be of the life before.
func randomLives(random *rand.Rand, steps int) (all []lived) {
	at := random.IntN(100) // the step in which the next one may be created
	for {
		l := lived{created: at*15 - random.IntN(15)}
		l.ready = l.created + 31 + random.IntN(400)
		l.first = max(0, (l.ready+14)/15+random.IntN(3))
		if len(all) == 0 && random.IntN(2) == 0 {
			l.created, l.ready, l.first = -random.IntN(5000)-500, -random.IntN(500), 0
		}
		l.last = l.first + 40 + random.IntN(300)
		if l.last > steps {
			return all
		}
		counts := make([]float64, steps+1)
		x := float64(random.IntN(3))
		if l.created < 0 {
			x = 1000
		}
		fast := []float64{0, 1, 40}[random.IntN(3)]
		for i := l.first; i <= l.last; i++ {
			x += math.Round(fast * random.Float64())
			if random.IntN(400) == 0 && i > l.first+40 && i < l.last {
				x = 0 // its container is made again: after two values of its buckets, and before the step in which the next pod may be
			}
			counts[i] = x
		}
		late := l.first + []int{0, 0, 25}[random.IntN(3)]
		l.finished = func(i int) float64 {
			if i < late {
				return nan // a server that begins its counters with the first request
			}
			return counts[i]
		}
		missing := map[int]bool{}
		for range random.IntN(4) {
			from := l.first + random.IntN(l.last-l.first)
			for i := range random.IntN(6) {
				missing[from+i] = true
			}
		}
		l.skipped = func(i int) bool { return missing[i] }
		all = append(all, l)
		at = l.last + random.IntN(2) // in the step of the last scrape, or the next
		if random.IntN(2) == 0 {
			at += random.IntN(300)
		}
	}
}

// looping is a dump of a pod that is made again so many times, each time for some steps.
func looping(lives, each int) *dumping {
	steps := lives*each + 1
	d := empty(steps)
	begin := float64(d.Start.Unix())
	add := func(s history.Signal, part history.Part, family string, value func(life, age int) float64) {
		v := make(history.Values, steps)
		for i := range v {
			v[i] = value(i/each, i%each)
		}
		d.Series = append(d.Series, history.Series{Signal: s, Part: part, Family: family, Pod: "a-0", Values: v})
	}
	add(history.PodCreated, history.Whole, "kube_pod_created", func(life, _ int) float64 { return begin + float64(15*life*each) - 14 })
	add(history.PodReady, history.Whole, "kube_pod_status_ready", func(_, age int) float64 { return float64(min(age, 1)) })
	idle := func(_, age int) float64 { return []float64{nan, 0, 0}[min(age, 2)] }
	add(history.Waiting, history.Whole, "vllm:num_requests_waiting", idle)
	add(history.Running, history.Whole, "vllm:num_requests_running", idle)
	for _, s := range []history.Series{
		{Signal: history.GenerationTokens, Part: history.Count, Family: "vllm:request_generation_tokens_count"},
		{Signal: history.GenerationTokens, Part: history.Sum, Family: "vllm:request_generation_tokens_sum"},
		{Signal: history.PromptTokens, Part: history.Count, Family: "vllm:request_prompt_tokens_count"},
		{Signal: history.PromptTokens, Part: history.Sum, Family: "vllm:request_prompt_tokens_sum"},
	} {
		add(s.Signal, s.Part, s.Family, func(_, age int) float64 { return 3*float64(age) + idle(0, age) })
	}
	for k := range 100 {
		b := history.Series{Signal: history.GenerationTokens, Part: history.Bucket, Family: "vllm:request_generation_tokens_bucket", Pod: "a-0", Every: 20, Labels: map[string]string{"le": cmp.Or(map[int]string{99: "+Inf"}[k], fmt.Sprint(k))}}
		for i := 0; i < steps; i += 20 {
			b.Values = append(b.Values, float64(3*(each-1)))
		}
		d.Series = append(d.Series, b)
	}
	return d
}

// TestManyLivesOfAName: each counts from zero, and ten thousand take little memory and time.
func TestManyLivesOfAName(t *testing.T) {
	long.Skip(t)
	d := looping(10_000, 4)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	f := reduced(t, d.Dump)
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(d)
	held := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20
	t.Logf("%s, %d MB allocated, %d MB held", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, held)
	require.Less(t, held, int64(64))
	require.Less(t, took, time.Minute)
	require.Equal(t, 10_000, f.Repairs.Pods)
	require.Len(t, f.Starts, 9_999+1)
	require.InDelta(t, 90_000, total(f), 10)
	require.Zero(t, f.Repairs.Restarts)
	runtime.KeepAlive(f)

	d = looping(20_001, 3)
	_, err := history.Reduce(d.Dump)
	requireRefused(t, err, history.PodCreated)
}
