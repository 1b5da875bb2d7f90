package defaulting

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheBudgetIsExceededByAsMuchAgain at most, however many clients come, each once there is nothing left for those before.
func TestTheBudgetIsExceededByAsMuchAgain(t *testing.T) {
	var b budget
	for i := range 256 {
		for b.take(fmt.Sprint(i), step) {
			require.LessOrEqual(t, b.total, 2*MaxPending, i)
		}
	}
	require.Greater(t, b.total, 2*MaxPending-step)
	b.give("0", b.of["0"])
	require.True(t, b.take("256", step), "what was given back is to be had")
}
