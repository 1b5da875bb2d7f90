//go:build race

package main

// underRace says that the race detector runs, under which a simulation takes ten times as long.
const underRace = true
