package policyfile_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/policyfile"
)

// FuzzParse gives Parse any bytes. What it accepts can be built, and its effective configuration is the same again;
// what it refuses, it places.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		policyfile.Example(),
		"policies:\n- static: {replicas: 8}\n",
		"policies:\n- realtime: {metrics: [{name: a, high: .inf, low: -0.0}], up: {cooldown: 30}}\n",
		"policies:\n- &a\n  floor: {base: *a, cron: {mode: InWindow, windows: [{name: w, start: 0 8 * * *, end: 0 9 * * *, replicas: 2}]}}\n",
		"policies:\n- highest: {members: [{proportional: {profile: kpa}}, {saturation: {}}]}\n  stabilized: {up: 1h}\n  bounds: {min: 0, max: 3}\n",
		"policies: []\n---\n", "a: &a [*a]", "\xff\xfe", "{? {a: b} : c}", "policies:\n- name: \"\\u0085\\0\"\n  static: {replicas: 0x10}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		policies, err := policyfile.Parse(data, "f.yaml")
		if err != nil {
			require.Nil(t, policies)
			position := new(policyfile.PositionError)
			require.True(t, errors.As(err, &position))
			return
		}
		for _, p := range policies {
			_, err := p.Build(bounds())
			require.NoError(t, err)
			text, err := p.Effective()
			require.NoError(t, err)
			again, err := policyfile.Parse(text, "effective.yaml")
			require.NoError(t, err, "%s", text)
			require.Equal(t, []policyfile.Policy{p}, again)
		}
	})
}
