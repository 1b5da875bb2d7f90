//go:build !race

package history_test

const underRace = false
