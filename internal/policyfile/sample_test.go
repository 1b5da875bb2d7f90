package policyfile_test

import (
	"testing"
	"time"
	_ "time/tzdata" // the tests must not depend on the machine's database

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/policyfile"
	"github.com/inferscale/inferscale/scaling"
)

func bounds() scaling.Bounds { return scaling.Bounds{Min: 1, Max: 20} }

// TestExample reads the sample, builds all that is in it and lets each decide once.
func TestExample(t *testing.T) {
	policies, err := policyfile.Parse([]byte(policyfile.Example()), "sample.yaml")
	require.NoError(t, err)
	var algorithms []string
	for _, p := range policies {
		algorithms = append(algorithms, p.Algorithm)
		again, err := policyfile.Parse(effective(t, p), "effective.yaml")
		require.NoError(t, err)
		require.Equal(t, []policyfile.Policy{p}, again)
		live, err := p.Build(bounds())
		require.NoError(t, err)
		d := live.Decide(time.Unix(1e9, 0), scaling.Observation{SpecReplicas: 3, ReadyReplicas: 3})
		require.True(t, d.Replicas >= 1 && d.Replicas <= 20)
	}
	require.Subset(t, algorithms, []string{"realtime", "proportional", "saturation", "cron", "static", "floor", "highest"})
}

func effective(t require.TestingT, p policyfile.Policy) []byte {
	data, err := p.Effective()
	require.NoError(t, err)
	return data
}
