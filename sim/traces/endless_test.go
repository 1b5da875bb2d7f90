package traces_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/long"
	"github.com/inferscale/inferscale/sim/traces"
)

// windows is a file with windows of a nanosecond, without end.
type windows struct {
	buffer []byte
	next   int64
}

func (w *windows) Read(p []byte) (int, error) {
	for len(w.buffer) < len(p) {
		if w.next == 0 {
			w.buffer = append(w.buffer, rates...)
		}
		w.buffer = fmt.Appendf(w.buffer, "%d.%09d,1,,\n", w.next/1e9, w.next%1e9)
		w.next++
	}
	n := copy(p, w.buffer)
	w.buffer = w.buffer[:copy(w.buffer, w.buffer[n:])]
	return n, nil
}

// TestReadEndlessWindows: short windows fill no memory either.
func TestReadEndlessWindows(t *testing.T) {
	long.Skip(t)
	_, err := traces.Read(&windows{}, "f.csv")
	require.EqualError(t, err, "f.csv:10000002: must have at most 10000000 windows")
}
