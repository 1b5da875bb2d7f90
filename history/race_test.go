//go:build race

package history_test

// underRace says that the race detector runs, which takes ten times as much time and memory.
const underRace = true
