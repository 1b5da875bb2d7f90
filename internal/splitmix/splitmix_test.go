package splitmix

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNext are the first numbers that the generator's authors publish for the seed 1234567.
func TestNext(t *testing.T) {
	s := Stream{State: 1234567}
	for _, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		assert.Equal(t, want, s.Next())
	}
}

func TestDistributions(t *testing.T) {
	s := Stream{State: 1}
	const n = 100_000
	uniform, exponential := 0.0, 0.0
	for range n {
		u := s.Uniform()
		assert.True(t, u > 0 && u < 1)
		uniform += u / n
		exponential += s.Exponential() / n
	}
	assert.InDelta(t, 0.5, uniform, 0.01)
	assert.InDelta(t, 1, exponential, 0.01)
}
