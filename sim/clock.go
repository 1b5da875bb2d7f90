package sim

import "time"

// The simulator counts time in whole picoseconds since the start of the run. The duration of a step is then an integer, so
// that a thousand steps computed at once end at the same time as a thousand single steps. With 64 bits a run can last 106
// days (docs/decisions/0014).
const (
	nanosecond = 1000
	second     = 1e12
	never      = int64(1<<63 - 1)
)

// ticks converts a duration to the simulator's unit.
func ticks(d time.Duration) int64 { return int64(d) * nanosecond }

// elapsed converts a time of the simulator to a duration, rounded down to the nanosecond.
func elapsed(t int64) time.Duration { return time.Duration(t / nanosecond) }

// seconds converts a span of the simulator's time.
func seconds(t int64) float64 { return float64(t) / second }
