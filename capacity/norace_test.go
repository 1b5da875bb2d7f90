//go:build !race

package capacity

const underRace = false
