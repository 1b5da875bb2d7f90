//go:build race

package capacity

// underRace says that the race detector runs, under which a simulation takes ten times as long.
const underRace = true
