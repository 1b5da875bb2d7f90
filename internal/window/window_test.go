package window_test

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/internal/window"
)

var start = time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)

// bruteWindow keeps every sample and looks through all of them. It follows the words of window.Window: times rounded
// down, a clock that steps back takes every sample along, asking for the past asks for the newest time.
type bruteWindow struct {
	w       window.Window
	newest  int64
	started bool
	at      []int64
	values  []float64
}

func (b *bruteWindow) slot(t time.Time) int64 {
	res := max(1, b.w.Resolution.Milliseconds())
	return int64(math.Floor(float64(t.UnixMilli())/float64(res))) * res
}

func (b *bruteWindow) record(t time.Time, v float64) {
	at := b.slot(t)
	if b.started && at < b.newest {
		for i := range b.at {
			b.at[i] -= b.newest - at
		}
	}
	b.newest, b.started = at, true
	b.at = append(b.at, at)
	b.values = append(b.values, v)
}

// query returns the samples in the window, and forgets the others for good: a clock that then steps back does not
// bring them back.
func (b *bruteWindow) query(t time.Time) []float64 {
	if at := b.slot(t); !b.started || at > b.newest {
		b.newest, b.started = at, true
	}
	length := max(b.w.Length.Milliseconds(), b.w.Resolution.Milliseconds(), 1)
	var at []int64
	var values []float64
	for i := range b.at {
		if b.at[i] > b.newest-length {
			at, values = append(at, b.at[i]), append(values, b.values[i])
		}
	}
	b.at, b.values = at, values
	return values
}

// exactMean is the mean in arbitrary precision, rounded once.
func exactMean(values []float64) float64 {
	sum := new(big.Float).SetPrec(3000)
	for _, v := range values {
		sum.Add(sum, new(big.Float).SetFloat64(v))
	}
	mean, _ := new(big.Float).SetPrec(3000).Quo(sum, big.NewFloat(float64(len(values)))).Float64()
	return mean
}

// TestWindowsEqualBruteForce drives the three windows and the brute force through random records and queries, with
// gaps, bursts within one slot, steps back of the clock and trips through JSON.
func TestWindowsEqualBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := window.Window{
			Length:     time.Duration(rapid.IntRange(0, 20_000).Draw(t, "length")) * time.Millisecond,
			Resolution: time.Duration(rapid.SampledFrom([]int{0, 1, 7, 1000, 2500}).Draw(t, "resolution")) * time.Millisecond,
		}
		var lows window.Min
		var highs window.Max
		var means window.Mean
		// A sample that a window may have dropped as it can never count again must not count in the brute force
		// either once the clock steps back, so each window has its own.
		brute := &bruteWindow{w: w}
		now := start
		if rapid.Bool().Draw(t, "before 1970") {
			now = time.Unix(-5, 0)
		}
		value := rapid.OneOf(
			rapid.Map(rapid.IntRange(-5, 5), func(i int) float64 { return float64(i) }),
			rapid.Float64Range(-1e6, 1e6),
			rapid.SampledFrom([]float64{0.1, 1e-300, 1e200, -1e200, 0}),
		)
		for range rapid.IntRange(1, 80).Draw(t, "events") {
			step := rapid.SampledFrom([]int{0, 1, 100, 1000, 3000, 9000, 30_000, -1, -4000}).Draw(t, "step")
			now = now.Add(time.Duration(step) * time.Millisecond)
			if rapid.Bool().Draw(t, "record") {
				v := value.Draw(t, "value")
				brute.query(maxTime(now, brute.newest, brute.started)) // recording drops what is out of the window
				brute.record(now, v)
				require.True(t, lows.Record(w, now, v))
				require.True(t, highs.Record(w, now, v))
				require.True(t, means.Record(w, now, v))
			}
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				lows, highs, means = restored(t, lows), restored(t, highs), restored(t, means)
			}
			if rapid.Bool().Draw(t, "query") {
				in := brute.query(now)
				low, okLow := lows.Min(w, now)
				high, okHigh := highs.Max(w, now)
				mean, okMean := means.Mean(w, now)
				require.Equal(t, len(in) > 0, okLow)
				require.Equal(t, len(in) > 0, okHigh)
				require.Equal(t, len(in) > 0, okMean)
				if len(in) == 0 {
					require.Equal(t, []float64{0, 0, 0}, []float64{low, high, mean})
					require.Zero(t, lows.Len()+highs.Len()+means.Len(), "nothing is kept that counts no more")
					continue
				}
				wantLow, wantHigh := in[0], in[0]
				for _, v := range in {
					wantLow, wantHigh = min(wantLow, v), max(wantHigh, v)
				}
				require.Equal(t, wantLow, low)
				require.Equal(t, wantHigh, high)
				require.LessOrEqual(t, means.Len(), int(max(1, w.Length.Milliseconds())/max(1, w.Resolution.Milliseconds()))+1)
				// The largest magnitude in the window bounds the error: one part in 2^100, rounded once.
				scale := max(math.Abs(wantLow), math.Abs(wantHigh))
				want := exactMean(in)
				require.InDelta(t, want, mean, math.Abs(want)*0x1p-52+scale*0x1p-90)
				require.LessOrEqual(t, wantLow, mean, "the mean is between the least and the most")
				require.LessOrEqual(t, mean, wantHigh, "the mean is between the least and the most")
				if wantLow == wantHigh {
					require.Equal(t, wantLow, mean, "the mean of a constant is the constant")
				}
			}
		}
	})
}

// maxTime is now, or the newest time if that is later.
func maxTime(now time.Time, newest int64, started bool) time.Time {
	if t := time.UnixMilli(newest); started && t.After(now) {
		return t
	}
	return now
}

func restored[T any](t *rapid.T, from T) (to T) {
	data, err := json.Marshal(from)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &to))
	return to
}

// TestWindowRefusesWhatIsNotANumber: a NaN does not poison a window.
func TestWindowRefusesWhatIsNotANumber(t *testing.T) {
	w := window.Window{Length: time.Minute}
	var highs window.Max
	var lows window.Min
	var means window.Mean
	require.True(t, highs.Record(w, start, 5) && lows.Record(w, start, 5) && means.Record(w, start, 5))
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.False(t, highs.Record(w, start, v) || lows.Record(w, start, v) || means.Record(w, start, v))
	}
	require.False(t, means.Record(w, start, 1e291), "a sum of such values could overflow")
	var huge window.Mean
	require.True(t, huge.Record(w, start, 1e290))
	high, _ := highs.Max(w, start)
	low, _ := lows.Min(w, start)
	mean, _ := means.Mean(w, start)
	require.Equal(t, []float64{5, 5, 5}, []float64{high, low, mean})
}

// TestHugeSampleLeavesNoTrace: a sum that subtracts would keep a rest of 1e200 for ever.
func TestHugeSampleLeavesNoTrace(t *testing.T) {
	w := window.Window{Length: 10 * time.Second}
	var means window.Mean
	means.Record(w, start, 1e200)
	for i := 1; i <= 10; i++ {
		means.Record(w, start.Add(time.Duration(i)*time.Second), 0.1)
	}
	mean, ok := means.Mean(w, start.Add(10*time.Second))
	require.True(t, ok)
	require.Equal(t, 0.1, mean)
}

func TestWindowStateIsChecked(t *testing.T) {
	for state, says := range map[string]string{
		`{"newest":5,"samples":[[1,2],[2,3]]}`:            "samples[1]: not in order",
		`{"newest":5,"samples":[[2,3],[1,2]]}`:            "samples[1]: not in order",
		`{"newest":5,"samples":[[1,3],[1,2]]}`:            "samples[1]: not in order", // two of one slot
		`{"newest":5,"samples":[[1,3],[2,3]]}`:            "samples[1]: not in order", // the first can never be the maximum
		`{"newest":5,"samples":[[1.5,3]]}`:                "samples[0]: 1.5 is not a time",
		`{"newest":5,"samples":[[6,3]]}`:                  "samples[0]: 6 is not a time",
		`{"newest":9007199254740993,"samples":[[6,3]]}`:   "newest: 9007199254740993 is not a time",
		`{"newest":5,"samples":[[-36028797018963976,3]]}`: "is not a time",
		`{"samples":3}`: "cannot unmarshal",
		`{"new":1}`:     "unknown field",
		`7`:             "cannot unmarshal",
	} {
		var highs window.Max
		require.ErrorContains(t, highs.UnmarshalJSON([]byte(state)), says, state)
	}
	for state, says := range map[string]string{
		`{"newest":5,"sums":[[1,0,2,0]]}`:           "sums[0]: 0 is not a number of samples",
		`{"newest":5,"sums":[[1,1.5,2,0]]}`:         "sums[0]: 1.5 is not a number of samples",
		`{"newest":5,"sums":[[1,1000000001,2,0]]}`:  "is not a number of samples",
		`{"newest":5,"sums":[[2,1,2,0],[1,1,2,0]]}`: "not in order",
		`{"newest":5,"sums":[[1,1,2,0],[1,1,2,0]]}`: "not in order", // two of one slot
		`{"newest":5,"sums":[[6,1,2,0]]}`:           "sums[0]: 6 is not a time",
		`{"newest":-36028797018963976,"sums":[]}`:   "newest: -36028797018963976 is not a time",
		`{"newest":5,"sums":[[1,2]`:                 "unexpected EOF",
		`{"new":1}`:                                 "unknown field",
		`{"newest":5,"sums":[[1,1,2.5e290,0]]}`:     "sums[0]: 2.5e+290, 0 is not a sum", // more than twice what a sample can be
		`{"newest":5,"sums":[[1,1,2,3]]}`:           "sums[0]: 2, 3 is not a sum",
		// the mean was NaN, and negative: sums that overflow, numbers of samples that do
		`{"newest":5,"sums":[[1,1,1.7e308,0],[2,1,1.7e308,0]]}`: "is not a sum",
		`{"newest":5,"sums":[[1,1,2,1.7e308]]}`:                 "is not a sum",
		`{"newest":5,"sums":[[1,9e18,1,0],[2,9e18,1,0]]}`:       "is not a number of samples",
	} {
		var means window.Mean
		require.ErrorContains(t, means.UnmarshalJSON([]byte(state)), says, state)
	}
	var means window.Mean
	require.NoError(t, means.UnmarshalJSON([]byte(`{"newest":5,"sums":[[1,1000000000,2e9,0],[2,1,2e290,0],[3,1,0,0]]}`)))
}

// TestWhatIsRecordedAndNeverAskedForLeaves: recording alone keeps no more than a window's worth.
func TestWhatIsRecordedAndNeverAskedForLeaves(t *testing.T) {
	w := window.Window{Length: time.Minute, Resolution: time.Second}
	var highs window.Max
	var lows window.Min
	var means window.Mean
	for i := range 1000 {
		now := start.Add(time.Duration(i) * time.Second)
		highs.Record(w, now, -float64(i))
		lows.Record(w, now, float64(i))
		means.Record(w, now, 1)
	}
	require.Equal(t, []int{60, 60, 60}, []int{highs.Len(), lows.Len(), means.Len()})
}

// TestLeaves: the sample that is the maximum counts until then.
func TestLeaves(t *testing.T) {
	w := window.Window{Length: 10 * time.Second}
	var highs window.Max
	var lows window.Min
	for i, v := range []float64{5, 4} {
		highs.Record(w, start.Add(time.Duration(3*i)*time.Second), v)
		lows.Record(w, start.Add(time.Duration(3*i)*time.Second), -v)
	}
	end := start.Add(10 * time.Second)
	require.True(t, end.Equal(highs.Leaves(w)))
	require.True(t, end.Equal(lows.Leaves(w)))
	before, _ := highs.Max(w, end.Add(-time.Millisecond))
	after, _ := highs.Max(w, end)
	require.Equal(t, []float64{5, 4}, []float64{before, after})
}

// TestMeanOfSlotsThatCancel: 2^54 + 2 - 2^54 is 2, though no float64 is 2^53 + 1.
func TestMeanOfSlotsThatCancel(t *testing.T) {
	w := window.Window{Length: 10 * time.Second}
	var means window.Mean
	for second, values := range [][]float64{{7}, {0x1p53, 1}, {0x1p53, 1}, {-0x1p54}} {
		for _, v := range values {
			require.True(t, means.Record(w, start.Add(time.Duration(second)*time.Second), v))
		}
	}
	mean, _ := means.Mean(w, start.Add(10*time.Second)) // without the 7
	require.Equal(t, 0.4, mean)
}

// TestTimesThatAreRemembered: 2^53 ms after 1970, and four times as many before.
func TestTimesThatAreRemembered(t *testing.T) {
	const last, first = 9_007_199_254_740_992, -36_028_797_018_963_968
	for ms, want := range map[int64]bool{0: true, last: true, last + 1: false, first: true, first - 1: false} {
		require.Equal(t, want, window.Remembered(ms), ms)
	}
	require.Equal(t, int64(-2), window.Back(3, 5))
	require.Equal(t, int64(first), window.Back(first+3, 5))
}

// TestARingGrows: what is in it stays in order.
func TestARingGrows(t *testing.T) {
	var r window.Ring[int]
	for i := range 100 {
		r.Push(i)
		if i%4 == 3 {
			r.PopFront()
		}
	}
	require.Equal(t, 75, r.Len())
	for i := range 75 {
		require.Equal(t, 25+i, *r.At(i))
	}
}

func TestWindowsAllocateNothingOnceFilled(t *testing.T) {
	w := window.Window{Length: time.Minute, Resolution: time.Second}
	var highs window.Max
	var lows window.Min
	var means window.Mean
	now := start
	tick := func() {
		now = now.Add(time.Second)
		v := float64(now.Unix() * 7919 % 101)
		highs.Record(w, now, v)
		lows.Record(w, now, v)
		means.Record(w, now, v)
		highs.Max(w, now)
		lows.Min(w, now)
		means.Mean(w, now)
	}
	for range 200 {
		tick()
	}
	require.Zero(t, testing.AllocsPerRun(1000, tick))
}

func BenchmarkWindow(b *testing.B) {
	w := window.Window{Length: time.Minute, Resolution: time.Second}
	values := make([]float64, 1024)
	for i := range values {
		values[i] = float64(i * 7919 % 1009)
	}
	b.Run("max", func(b *testing.B) {
		var highs window.Max
		now, i := start, 0
		b.ReportAllocs()
		for b.Loop() {
			now = now.Add(time.Second)
			i++
			highs.Record(w, now, values[i%1024])
			if _, ok := highs.Max(w, now); !ok {
				b.Fatal("empty")
			}
		}
	})
	b.Run("mean", func(b *testing.B) {
		var means window.Mean
		now, i := start, 0
		b.ReportAllocs()
		for b.Loop() {
			now = now.Add(time.Second)
			i++
			means.Record(w, now, values[i%1024])
			if _, ok := means.Mean(w, now); !ok {
				b.Fatal("empty")
			}
		}
	})
	b.Run("brute force max", func(b *testing.B) {
		brute := &bruteWindow{w: w}
		now, i := start, 0
		b.ReportAllocs()
		for b.Loop() {
			now = now.Add(time.Second)
			i++
			brute.record(now, values[i%1024])
			high := math.Inf(-1)
			for _, v := range brute.query(now) {
				high = max(high, v)
			}
			if math.IsInf(high, 0) {
				b.Fatal("empty")
			}
		}
	})
}

// TestMillis: up to a whole millisecond, without an overflow for the longest duration, which is no wait at all otherwise.
func TestMillis(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Minute: 60_000, math.MaxInt64: math.MaxInt64/1_000_000 + 1} {
		require.Equal(t, want, window.Millis(d))
	}
}
