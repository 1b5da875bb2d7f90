//go:build !race

package long

// Race says that the race detector runs.
const Race = false
