package starts

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// TestP90IsThatOfTheSorted compares with the sorted starts.
func TestP90IsThatOfTheSorted(t *testing.T) {
	assert.Equal(t, 100.0, P90(nil, 100))
	rapid.Check(t, func(t *rapid.T) {
		l := Learned{Starts: rapid.SliceOfN(rapid.Float64Range(0, longest), 1, most).Draw(t, "starts")}
		sorted := slices.Sorted(slices.Values(l.Starts))
		assert.Equal(t, sorted[int(math.Ceil(0.9*float64(len(sorted))))-1], P90(l.Starts, 100))
	})
}

// TestRisesBecomeStarts: what was asked for is a start once it is ready, and nothing if it was taken back.
func TestRisesBecomeStarts(t *testing.T) {
	var l Learned
	Applied(&l, 0, 3, 3)
	Applied(&l, 0, 4, 2)
	assert.Empty(t, l.Rises, "no more was asked for")
	Applied(&l, 10, 2, 5)
	Applied(&l, 20, 5, 7)
	Applied(&l, 30, 7, 8)
	assert.False(t, See(&l, 40, 8, 4))
	assert.True(t, See(&l, 70, 7, 5), "eight were taken back")
	assert.Equal(t, Learned{Rises: []Rise{{20, 7}}, Starts: []float64{60}}, l)
	assert.True(t, See(&l, 15, 7, 7), "the clock went back")
	assert.Equal(t, []float64{60, 0}, l.Starts)
	for i := range 2 * mostRises {
		Applied(&l, float64(i), 7, 8)
	}
	assert.Len(t, l.Rises, mostRises)
	assert.False(t, See(&l, 1e9, 8, 8), "nodes were missing for an hour")
	assert.Empty(t, l.Rises)
	for range 2 * most {
		Applied(&l, 0, 7, 8)
		See(&l, longest, 8, 8)
	}
	assert.Equal(t, slices.Repeat([]float64{longest}, most), l.Starts)
	assert.NoError(t, Validate(&l))
}

// TestValidateKnowsWhatCannotBe names the field and its rule.
func TestValidateKnowsWhatCannotBe(t *testing.T) {
	for says, l := range map[string]Learned{
		"more starts are remembered": {Starts: make([]float64, most+1)},
		"more starts":                {Rises: make([]Rise, mostRises+1)},
		"rises[1]: must be at a":     {Rises: []Rise{{}, {At: math.Inf(-1)}}},
		"rises[0]: must be at a":     {Rises: []Rise{{At: math.NaN()}}},
		"starts[1]: must be seconds": {Starts: []float64{1, -1}},
		"starts[0]: must be seconds": {Starts: []float64{2 * mostKept}},
	} {
		assert.ErrorContains(t, Validate(&l), says)
	}
}

// TestValidateTakesWhatCanBe: 20 starts of at most a day, and 64 rises, of stored states of all versions.
func TestValidateTakesWhatCanBe(t *testing.T) {
	assert.NoError(t, Validate(&Learned{Starts: []float64{0, 0.5, 86400}}))
	assert.Error(t, Validate(&Learned{Starts: []float64{86401}}))
	assert.NoError(t, Validate(&Learned{Starts: make([]float64, 20), Rises: make([]Rise, 64)}))
	assert.Error(t, Validate(&Learned{Starts: make([]float64, 21)}))
	assert.Error(t, Validate(&Learned{Rises: make([]Rise, 65)}))
}

// TestUnseenForgetsWhatIsReady: of three and five that were asked for, three are ready, and nobody saw when.
func TestUnseenForgetsWhatIsReady(t *testing.T) {
	l := Learned{Rises: []Rise{{10, 3}, {20, 5}}}
	Unseen(&l, 3)
	assert.Equal(t, Learned{Rises: []Rise{{20, 5}}}, l)
}

// TestAnHourIsCountedFromTheRise, not from 1970.
func TestAnHourIsCountedFromTheRise(t *testing.T) {
	for took, learned := range map[float64]bool{100: true, 3600: true, 3601: false} {
		var l Learned
		Applied(&l, 1.7e9, 1, 2)
		assert.Equal(t, learned, See(&l, 1.7e9+took, 2, 2), took)
		assert.Empty(t, l.Rises)
	}
}

// TestWhatBecomesReadyAtOnceIsOneStart: three rises for which nodes came after 45 min were three starts of 45 min.
func TestWhatBecomesReadyAtOnceIsOneStart(t *testing.T) {
	var l Learned
	for range most {
		l.Starts = append(l.Starts, 100)
	}
	for i := range 3 {
		Applied(&l, float64(60*i), int32(i), int32(i+1))
	}
	assert.False(t, See(&l, 1000, 3, 0))
	assert.True(t, See(&l, 2700, 3, 3))
	assert.Len(t, l.Starts, most)
	assert.Equal(t, []float64{100, 260}, l.Starts[most-2:])
	assert.Empty(t, l.Rises)
}

// TestAWaitForNodesIsNoStart: half an hour without nodes counted as a start, and the fleet held what it had for an hour.
func TestAWaitForNodesIsNoStart(t *testing.T) {
	l := Learned{Starts: []float64{105, 104, 105}}
	learn := func(took float64) float64 {
		Applied(&l, 0, 1, 2)
		assert.True(t, See(&l, took, 2, 2))
		return P90(l.Starts, 0)
	}
	assert.InDelta(t, 270, learn(1755), 0)
	assert.InDelta(t, 600, learn(1755), 0, "if starts take that long now, a few teach it")
	assert.InDelta(t, 1260, learn(1755), 0)
	assert.InDelta(t, 1755, learn(1755), 0)
	l = Learned{}
	assert.InDelta(t, 1755, learn(1755), 0, "the first is believed")
}
