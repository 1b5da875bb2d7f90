package scalingtest

import (
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// Try checks one property as Run does, on anything that can fail as a test does.
func Try(t rapid.TB, property string, newPolicy func() scaling.Policy, opts Options) {
	named(property).tried(t, func(*rapid.T) (func() scaling.Group, Options) { return asGroup(newPolicy), opts })
}

// TryGroup is Try for a group.
func TryGroup(t rapid.TB, property string, newGroup func() scaling.Group, opts Options) {
	named(property).tried(t, func(*rapid.T) (func() scaling.Group, Options) { return newGroup, opts.ofGroup() })
}
