//go:build race

package hetero_test

// raceEnabled says that the race detector is on, under which the largest tests would take too long.
const raceEnabled = true
