package scalingtest

import (
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// Try checks one property as Run does, on anything that can fail as a test does.
func Try(t rapid.TB, property string, newPolicy func() scaling.Policy, opts Options) {
	named(property).tried(t, func(*rapid.T) (func() scaling.Policy, Options) { return newPolicy, opts })
}

// Names returns the names of all properties.
func Names() (names []string) {
	for _, p := range properties() {
		names = append(names, p.name)
	}
	return names
}
