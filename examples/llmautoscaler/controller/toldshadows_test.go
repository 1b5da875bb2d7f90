package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/policy"
)

// TestRegressionRenamedShadowsAreForgotten: an object whose shadows got other names with every edit kept when an event was made of
// each of them, for as long as it was there. Of those that keep their names it is still known.
func TestRegressionRenamedShadowsAreForgotten(t *testing.T) {
	at := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	named := func(name string) *watchers {
		raw := []policy.RawShadow{{Name: "stays"}, {Name: name}}
		return &watchers{spec: &policy.Spec{}, raw: raw, told: make(map[string]time.Time)}
	}
	w := named("first")
	w.told[ReasonShadowApart+"/stays"], w.told[ReasonNotReplayed+"/"] = at, at
	for i := range 100 {
		name := fmt.Sprintf("a/%d", i) // a name may have a slash where the definition is an old one
		w.told[ReasonShadowApart+"/"+w.raw[1].Name] = at
		next := named(name)
		next.inherit(w)
		w = next
	}
	require.Equal(t, map[string]time.Time{ReasonShadowApart + "/stays": at, ReasonNotReplayed + "/": at}, w.told)
}
