package calibrate_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/sim"
)

type truth struct {
	name string
	got  calibrate.Estimate
	want float64
}

func truths(r *calibrate.Result, s *sim.Server) []truth {
	return []truth{
		{"base", r.Base, s.Base},
		{"prefillToken", r.PrefillToken, s.PrefillToken},
		{"sequence", r.Sequence, s.Sequence},
		{"kvToken", r.KVToken, s.KVToken},
		{"kvTokens", r.KVTokens, float64(s.KVTokens)},
	}
}

// finds requires that what is known is within 5 % of the truth, and that all intervals hold it.
func finds(t *testing.T, r *calibrate.Result, s *sim.Server, slack float64) {
	t.Helper()
	for _, x := range truths(r, s) {
		t.Logf("%-12s %+6.2f %% [%+.1f, %+.1f] %s", x.name, 100*off(x.got.Value, x.want), 100*off(x.got.Lower, x.want), 100*off(x.got.Upper, x.want), x.got.Unknown)
		if x.got.Known() && x.want > 0 {
			require.InEpsilon(t, x.want, x.got.Value, 0.05, x.name)
		}
		require.LessOrEqual(t, x.got.Lower, x.want*(1+slack), x.name)
		require.GreaterOrEqual(t, x.got.Upper, x.want*(1-slack), x.name)
	}
}

// TestFitFindsTheServer: on three servers and three shapes of traffic, none of which the fit was made on, with fleets that grow and
// shrink, cold starts and pods that fail to answer: each parameter that is said to be known is within 5 % of the truth, each
// interval holds it, and so does the time per token at the highest load.
func TestFitFindsTheServer(t *testing.T) {
	long.Skip(t)
	for _, server := range []sim.Server{sim.Qwen32B(), sim.Llama70BA100(), sim.Llama70BH100x8()} {
		scale := 0.014 / server.Base
		for _, shape := range []struct {
			name           string
			low, high      float64
			prompt, answer sim.Length
		}{
			{"reasoning", 0.1, 1.6, lengths(400, 400, 8000), lengths(3000, 2000, 16000)},
			{"agents", 2, 10, lengths(2500, 1500, 8000), lengths(400, 300, 2000)},
			{"documents", 0.5, 3, lengths(6000, 4000, 48000), lengths(600, 400, 4000)},
		} {
			t.Run(server.Name+"/"+shape.name, func(t *testing.T) {
				r, err := calibrate.Fit(production{
					server: server, workload: day(24, shape.low*scale, shape.high*scale, shape.prompt, shape.answer), replicas: wave(24),
					scrape: 15 * time.Second, failures: 0.02, counted: true, seed: 5,
				}.points(t), calibrate.Options{})
				require.NoError(t, err)
				finds(t, &r, &server, 0)
				require.True(t, r.Base.Known())
				require.True(t, r.KVTokens.Known())
				law, want := r.Law(), calibrate.Law{Base: server.Base, PrefillToken: server.PrefillToken, Sequence: server.Sequence, KVToken: server.KVToken}
				require.InEpsilon(t, want.ITL(r.Running.P95, r.KV.P95, r.Prompts.P95), law.ITL(r.Running.P95, r.KV.P95, r.Prompts.P95), 0.04)
			})
		}
	}
}

// TestScrapesThatFail: where one scrape in seven fails, nearly all of what was counted is used still, and the server is found.
func TestScrapesThatFail(t *testing.T) {
	server := sim.Llama70BH100x4()
	points := production{
		server: server, workload: day(12, 1, 6, lengths(900, 900, 16000), lengths(250, 250, 4000)), replicas: []int32{4},
		scrape: 15 * time.Second, failures: 0.15, counted: true, seed: 3,
	}.points(t)
	r, err := calibrate.Fit(points, calibrate.Options{})
	require.NoError(t, err)
	require.Greater(t, float64(r.Rows*20), 0.9*float64(len(points)))
	require.InEpsilon(t, server.Base, r.Base.Value, 0.02)
	require.InEpsilon(t, server.PrefillToken, r.PrefillToken.Value, 0.05)
}

// wave is a fleet that grows and shrinks with the day.
func wave(hours int) []int32 {
	n := make([]int32, hours)
	for i := range n {
		n[i] = 3 + int32(math.Round(2*(1-math.Cos(2*math.Pi*float64(i)/float64(hours)))/2))
	}
	return n
}

// lawful returns points that obey the law to the bit, of pods with all kinds of load.
func lawful(law calibrate.Law, pods, n int, seed uint64) []calibrate.Point {
	random := rand{seed}
	begin := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	var points []calibrate.Point
	for p := range pods {
		running, each, prompts := 30.0, 1000.0, 3000.0
		for i := range n {
			if i%20 == 1 { // the same within an equation
				running, each, prompts = 2+100*random.next(), 200+3000*random.next(), 1+6000*random.next()
			}
			itl := law.ITL(running, running*each, prompts)
			points = append(points, calibrate.Point{
				At: begin.Add(time.Duration(i) * 15 * time.Second), Pod: fmt.Sprint("pod-", p), Running: running, KVTokens: running * each,
				KVUse: running * each / 1e6, PromptRate: prompts, TokenRate: running / itl, ITL: itl, Weight: 15 * running / itl,
			})
		}
	}
	return points
}

type rand struct{ state uint64 }

func (r *rand) next() float64 {
	r.state = r.state*6364136223846793005 + 1442695040888963407
	return float64(r.state>>11) / (1 << 53)
}

func law() calibrate.Law {
	return calibrate.Law{Base: 0.014, PrefillToken: 6e-5, Sequence: 4e-5, KVToken: 4e-8}
}

// TestFitIsExactOnTheLaw: without errors there are none.
func TestFitIsExactOnTheLaw(t *testing.T) {
	r, err := calibrate.Fit(lawful(law(), 3, 4001, 1), calibrate.Options{})
	require.NoError(t, err)
	for i, e := range []calibrate.Estimate{r.Base, r.PrefillToken, r.Sequence, r.KVToken} {
		want := []float64{law().Base, law().PrefillToken, law().Sequence, law().KVToken}[i]
		require.True(t, e.Known(), e.Unknown)
		require.InEpsilon(t, want, e.Value, 0.05) // gauges change within an equation
	}
	require.Equal(t, 1e6, math.Round(r.KVTokens.Value))
	require.Equal(t, calibrate.Assumed, r.MaxSeqs.Source)
}

// TestOrderAndDuplicatesDoNotMatter: the same points in any order and any number of times give the same result to the bit.
func TestOrderAndDuplicatesDoNotMatter(t *testing.T) {
	points := lawful(law(), 4, 801, 2)
	for i := range points {
		points[i].ITL *= 1 + 0.05*math.Sin(float64(i*i))
	}
	want, err := calibrate.Fit(points, calibrate.Options{})
	require.NoError(t, err)
	shuffled := append(slices.Clone(points), points[100:900]...)
	random := rand{3}
	for i := range shuffled {
		j := int(random.next() * float64(i+1))
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	}
	got, err := calibrate.Fit(shuffled, calibrate.Options{})
	require.NoError(t, err)
	require.Contains(t, got.Excluded, calibrate.Exclusion{Reason: calibrate.Duplicate, Points: 800})
	got.Points, got.Excluded = want.Points, want.Excluded
	require.Equal(t, want, got)
}

// TestScales: twice the weight of all changes nothing, and a clock of another unit changes only the unit.
func TestScales(t *testing.T) {
	points := lawful(law(), 2, 1601, 4)
	for i := range points {
		points[i].ITL *= 1 + 0.03*math.Cos(float64(i*7))
	}
	one, err := calibrate.Fit(points, calibrate.Options{})
	require.NoError(t, err)
	for i := range points {
		points[i].Weight *= 4
	}
	heavier, err := calibrate.Fit(points, calibrate.Options{})
	require.NoError(t, err)
	begin := points[0].At
	for i := range points {
		p := &points[i]
		p.At = begin.Add(2 * p.At.Sub(begin))
		p.ITL *= 2
		p.PromptRate /= 2
		p.TokenRate /= 2
	}
	slower, err := calibrate.Fit(points, calibrate.Options{Together: int(one.Window / (15 * time.Second))})
	require.NoError(t, err)
	for _, x := range [][3]calibrate.Estimate{
		{one.Base, heavier.Base, slower.Base},
		{one.PrefillToken, heavier.PrefillToken, slower.PrefillToken},
		{one.Sequence, heavier.Sequence, slower.Sequence},
		{one.KVToken, heavier.KVToken, slower.KVToken},
	} {
		require.InEpsilon(t, x[0].Value, x[1].Value, 1e-6)
		require.InEpsilon(t, 2*x[0].Value, x[2].Value, 1e-6)
		require.InEpsilon(t, 2*x[0].Upper, x[2].Upper, 1e-5)
	}
}

// TestOutliersAreLeftOut: one equation in ten with a replica that stood still changes nothing much.
func TestOutliersAreLeftOut(t *testing.T) {
	points := lawful(law(), 3, 4001, 6)
	for i := range points {
		if i/20%10 == 0 {
			points[i].ITL *= 3
		}
	}
	r, err := calibrate.Fit(points, calibrate.Options{})
	require.NoError(t, err)
	require.InEpsilon(t, law().Base, r.Base.Value, 0.02)
	require.InEpsilon(t, law().PrefillToken, r.PrefillToken.Value, 0.05)
	require.Greater(t, r.Outliers, 0.05)
}

// TestWhatIsNotToldIsRefused: where sequences and cache go up and down together nothing tells their times apart, and where the load
// never changes nothing tells any: the bounds hold the truth.
func TestWhatIsNotToldIsRefused(t *testing.T) {
	points := lawful(law(), 3, 2001, 7)
	for i := range points {
		p := &points[i]
		p.KVTokens = p.Running * 1000
		p.KVUse = p.KVTokens / 1e6
		p.ITL = ptr(law()).ITL(p.Running, p.KVTokens, p.PromptRate)
		p.TokenRate = p.Running / p.ITL
	}
	r, err := calibrate.Fit(points, calibrate.Options{})
	require.NoError(t, err)
	require.True(t, r.Base.Known())
	require.Contains(t, r.Sequence.Unknown, "explains what was seen")
	require.Contains(t, r.KVToken.Unknown, "explains what was seen")
	require.LessOrEqual(t, r.Sequence.Lower, 4e-5)
	require.GreaterOrEqual(t, r.Sequence.Upper, 4e-5)
	require.LessOrEqual(t, r.KVToken.Lower, 4e-8)
	require.GreaterOrEqual(t, r.KVToken.Upper, 4e-8)
	require.InEpsilon(t, 8e-5, r.Sequence.Value+1000*r.KVToken.Value, 0.02, "their sum is known")

	r, err = calibrate.Fit(points, calibrate.Options{Fixed: &calibrate.Law{Base: math.NaN(), PrefillToken: math.NaN(), Sequence: math.NaN(), KVToken: 4e-8}})
	require.NoError(t, err)
	require.True(t, r.Sequence.Known(), r.Sequence.Unknown)
	require.InEpsilon(t, 4e-5, r.Sequence.Value, 0.02)
	require.Equal(t, calibrate.Given, r.KVToken.Source)

	for i := range points {
		p := &points[i]
		p.Running, p.KVTokens, p.KVUse, p.PromptRate = 30, 30000, 0.03, 1000
		p.ITL = ptr(law()).ITL(30, 30000, 1000) * (1 + 0.001*math.Sin(float64(i)))
		p.TokenRate = 30 / p.ITL
	}
	r, err = calibrate.Fit(points, calibrate.Options{})
	require.NoError(t, err)
	for _, e := range []calibrate.Estimate{r.Base, r.PrefillToken, r.Sequence, r.KVToken} {
		require.False(t, e.Known())
	}
	require.LessOrEqual(t, r.Base.Lower, 0.014)
	require.GreaterOrEqual(t, r.Base.Upper, 0.014)
}

func ptr[T any](x T) *T { return &x }

// TestTooLittle: nothing, and nothing of use, is an error that says why.
func TestTooLittle(t *testing.T) {
	_, err := calibrate.Fit(nil, calibrate.Options{})
	require.ErrorIs(t, err, calibrate.ErrTooLittle)
	points := lawful(law(), 1, 801, 1)
	for i := range points {
		points[i].PromptRate = math.NaN()
	}
	_, err = calibrate.Fit(points, calibrate.Options{})
	require.ErrorIs(t, err, calibrate.ErrTooLittle)
	require.ErrorContains(t, err, calibrate.NoPrompts)
}

// TestBlocksAreNotEndless: each stretch of time takes memory, and stretches of a nanosecond more than there is.
func TestBlocksAreNotEndless(t *testing.T) {
	for _, block := range []time.Duration{-time.Hour, 1, time.Second} {
		_, err := calibrate.Fit(nil, calibrate.Options{Block: block})
		require.EqualError(t, err, fmt.Sprintf("options.block: %s: must be 0, or at least 1m", block))
	}
}

// TestUnknownIsNotZero: what is not known is left out and counted; a cache that is known as a share only has no size.
func TestUnknownIsNotZero(t *testing.T) {
	points := lawful(law(), 2, 2001, 8)
	want, err := calibrate.Fit(points, calibrate.Options{KVTokens: 1e6})
	require.NoError(t, err)
	for i := range points {
		points[i].KVTokens = math.NaN()
	}
	got, err := calibrate.Fit(points, calibrate.Options{KVTokens: 1e6})
	require.NoError(t, err)
	require.InEpsilon(t, want.KVToken.Value, got.KVToken.Value, 1e-6)
	require.Equal(t, calibrate.Given, got.KVTokens.Source)
	got, err = calibrate.Fit(points, calibrate.Options{})
	require.NoError(t, err)
	require.False(t, got.KVTokens.Known())
	require.False(t, got.KVToken.Known())
	require.InEpsilon(t, want.Base.Value, got.Base.Value, 0.01, "the rest does not hang on it")
	points[500].Running, points[700].ITL, points[900].Weight = math.NaN(), math.Inf(1), -1
	got, err = calibrate.Fit(points, calibrate.Options{KVTokens: 1e6})
	require.NoError(t, err)
	for _, reason := range []string{calibrate.NoRunning, calibrate.NoITL, calibrate.NoWeight} {
		require.True(t, slices.ContainsFunc(got.Excluded, func(e calibrate.Exclusion) bool { return e.Reason == reason }), reason)
	}
}

func nan() float64 { return math.NaN() }

// TestRegressionFullCachesAreLeftOutByTheirTokens: where only the tokens in a cache and its size were given, nearly full ones were not
// left out, and prompts that were computed again made prefill 23 % too slow.
func TestRegressionFullCachesAreLeftOutByTheirTokens(t *testing.T) {
	const size = 350_000
	v := law()
	points := lawful(v, 3, 4001, 1)
	for i := range points {
		p := &points[i]
		if p.KVUse = math.NaN(); i/40%3 == 0 {
			p.KVTokens = 345_000
			p.ITL = v.ITL(p.Running, p.KVTokens, 1.6*p.PromptRate)
			p.TokenRate = p.Running / p.ITL
		} else {
			p.KVTokens = min(p.KVTokens, 0.8*size)
			p.ITL = v.ITL(p.Running, p.KVTokens, p.PromptRate)
			p.TokenRate = p.Running / p.ITL
		}
	}
	r, err := calibrate.Fit(points, calibrate.Options{KVTokens: size})
	require.NoError(t, err)
	require.NotEmpty(t, r.Excluded)
	require.InEpsilon(t, law().PrefillToken, r.PrefillToken.Value, 0.02)
}

// TestRegressionWhatIsFittedCanBeRead: a start of more than a day, a name with a tab and a point with 1e15 sequences made files that
// nobody could read.
func TestRegressionWhatIsFittedCanBeRead(t *testing.T) {
	points := lawful(law(), 3, 4001, 1)
	points[7].Running = 1e15
	r, err := calibrate.Fit(points, calibrate.Options{Name: "m", KVTokens: 1e6})
	require.NoError(t, err)
	r.Startup, err = calibrate.Starts([]time.Duration{90 * time.Second, 100 * time.Second, 110 * time.Second, 25 * time.Hour})
	require.NoError(t, err)
	_, err = calibrate.Read(r.Text(), "server.yaml")
	require.NoError(t, err)
	for _, name := range []string{"a\tb", "a\xffb"} {
		_, err = calibrate.Fit(points, calibrate.Options{Name: name})
		require.ErrorContains(t, err, "name: ")
	}
}

// TestRegressionTimeWithoutPointsTakesNoMemory: two hours of points, and two more five years later, took half a gigabyte for the
// time blocks in between.
func TestRegressionTimeWithoutPointsTakesNoMemory(t *testing.T) {
	var points []calibrate.Point
	for _, from := range []time.Time{time.Unix(1.5e9, 0), time.Unix(1.5e9, 0).AddDate(5, 0, 0)} {
		for i := range 480 {
			running, prompts := float64(10+i%37), float64(100*(i%11))
			points = append(points, calibrate.Point{
				At: from.Add(time.Duration(i) * 15 * time.Second), Pod: "a", Running: running, KVTokens: 700 * running, KVUse: math.NaN(),
				PromptRate: prompts, TokenRate: math.NaN(), ITL: (0.01 + 2e-4*running) / (1 - 1e-4*prompts), Weight: 100,
			})
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := calibrate.Fit(points, calibrate.Options{Block: time.Minute})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Positive(t, r.Rows)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(64), "MB")
}

// TestRegressionDuplicatePointsDoNotMatter: they counted twice in the size of the cache, so that a pod of which Prometheus had each
// scrape three times outvoted two others.
func TestRegressionDuplicatePointsDoNotMatter(t *testing.T) {
	var points, again []calibrate.Point
	for i := range 480 {
		for k, pod := range []string{"a", "b", "c"} {
			running, prompts := float64(10+i%37), float64(100*(i%11))
			p := calibrate.Point{
				At: time.Unix(1.5e9, 0).Add(time.Duration(i) * 15 * time.Second), Pod: pod, Running: running, KVTokens: 700 * running,
				KVUse: 700 * running / 100_000, PromptRate: prompts, TokenRate: math.NaN(),
				ITL: (0.01 + 2e-4*running) / (1 - 1e-4*prompts), Weight: 100,
			}
			if again = append(again, p); k == 2 { // whose cache is half as large
				p.KVUse *= 2
				again = append(again[:len(again)-1], p, p, p)
			}
			points = append(points, p)
		}
	}
	once, err := calibrate.Fit(points, calibrate.Options{})
	require.NoError(t, err)
	twice, err := calibrate.Fit(again, calibrate.Options{})
	require.NoError(t, err)
	require.InDelta(t, 100_000, once.KVTokens.Value, 0)
	require.Equal(t, once.Document, twice.Document)
}

// TestRegressionWhatIsNoServerIsAnError: prompts of parts of a billionth of a token made a server with two billion seconds for each
// token, in a document that no reader of documents takes.
func TestRegressionWhatIsNoServerIsAnError(t *testing.T) {
	var points []calibrate.Point
	for i := range 480 {
		running, share := float64(10+i/5%37), 0.15*float64(i/8%5)
		points = append(points, calibrate.Point{
			At: time.Unix(1.5e9, 0).Add(time.Duration(i) * 15 * time.Second), Pod: "a", Running: running, KVTokens: 700 * running, KVUse: math.NaN(),
			PromptRate: share / 2e9, TokenRate: math.NaN(), ITL: (0.01 + 2e-4*running) / (1 - share), Weight: 100,
		})
	}
	_, err := calibrate.Fit(points, calibrate.Options{})
	require.ErrorContains(t, err, "no server explains the points: prefillToken.value: ")
}
