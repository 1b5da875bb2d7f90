package k8s_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// oldState is what version 0.1 stored between its write of 3 -> 4 and the answer, of a target at version 1.
const oldState = `{"kind":"k8s.loop","version":1,` +
	`"targets":[{"apiVersion":"apps/v1","targetKind":"Deployment","namespace":"default","name":"llama","uid":"uid-llama"}],` +
	`"open":[{"apiVersion":"apps/v1","targetKind":"Deployment","namespace":"default","name":"llama","uid":"uid-llama",` +
	`"from":3,"to":4,"at":1772438400000,"resourceVersion":"1"}],"last":{"from":2,"to":3,"at":1772438280000},` +
	`"policy":{"kind":"counting","version":1,"state":{"decided":7,"applied":2,"at":1772438280}}}`

// A write that was open when the version changed is settled by the next one, and the memory goes on.
func TestOldStateIsRead(t *testing.T) {
	for name, arrived := range map[string]bool{"it has arrived": true, "it arrives later": false} {
		t.Run(name, func(t *testing.T) {
			c, o := newCluster(3), &observer{value: 5}
			require.NoError(t, c.store(t).Save(t.Context(), "state", nil, []byte(oldState)))
			arrive := func() { c.Targets["llama"].Spec.Replicas = 4; c.Touch("llama") }
			if arrived {
				arrive()
			}
			l := newCounting(t, c, o, nil)
			require.Equal(t, arrived, tick(t, l).Settled)
			require.Contains(t, c.ConfigMap.Data["state"], `{"kind":"loop","version":1,`)
			if !arrived {
				arrive()
				l = newCounting(t, c, o, nil)
				require.True(t, tick(t, l).Settled)
			}
			require.Equal(t, 3, counted(t, c).Applied)
			require.Equal(t, start.Unix(), counted(t, c).At)
		})
	}
}

// What the old state says of an answered write, and of another target of its name, counts too.
func TestUpgradeState(t *testing.T) {
	require.JSONEq(t, `{"kind":"loop","version":1,"state":{
		"targets":[{"key":"Deployment.apps default/llama","id":"uid-llama"}],
		"open":[{"key":"Deployment.apps default/llama","id":"uid-llama","from":3,"to":4,"at":1772438400000,"version":"1","answered":false}],
		"last":{"from":2,"to":3,"at":1772438280000},
		"group":{"kind":"counting","version":1,"state":{"decided":7,"applied":2,"at":1772438280}}}}`,
		string(k8s.UpgradeState([]byte(oldState))))
	for _, other := range []string{"", "{", `{"kind":"counting","version":1,"state":{}}`, `{"kind":"loop","version":1,"state":{}}`} {
		require.Equal(t, other, string(k8s.UpgradeState([]byte(other))))
	}
}
