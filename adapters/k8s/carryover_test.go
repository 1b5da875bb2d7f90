package k8s_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/loop"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// composed returns the policy that is made of the algorithms that are named, as a controller composes them.
func composed(t *testing.T, kinds string) scaling.Policy {
	t.Helper()
	bounds := scaling.Bounds{Min: 1, Max: 8}
	must := func(p scaling.Policy, err error) scaling.Policy {
		require.NoError(t, err)
		return p
	}
	timetable, err := cronscale.New(cronscale.Config{Bounds: bounds, Policies: []cronscale.Policy{{Name: "day", Schedule: "@daily", TargetReplicas: 1}}})
	require.NoError(t, err)
	var members []scaling.Member
	for kind := range strings.SplitSeq(kinds, "+") {
		switch kind {
		case "realtime":
			members = append(members, scaling.Member{Name: kind, Policy: policy(t)})
		case "proportional":
			p, err := proportional.New(proportional.LLM(bounds, proportional.Metric{Name: waiting, Target: 10}))
			require.NoError(t, err)
			members = append(members, scaling.Member{Name: kind, Policy: scaling.New(p)})
		}
	}
	if len(members) == 0 {
		return scaling.New(timetable)
	}
	p := members[0].Policy
	if len(members) > 1 {
		p = must(scaling.Highest(members...))
	}
	if strings.HasSuffix(kinds, "cron") {
		p = must(scaling.Floor(p, timetable, bounds))
	}
	return p
}

var compositions = []string{
	"realtime", "proportional", "cron", "realtime+proportional", "realtime+cron", "proportional+cron", "realtime+proportional+cron",
}

// part returns the state of an algorithm in that of a composition.
func part(t *testing.T, state, kind string) string {
	t.Helper()
	var m struct {
		Kind  string
		State map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(state), &m))
	switch m.Kind {
	case kind:
		return state
	case "highest":
		if member := m.State[kind]; member != nil {
			return string(member)
		}
	case "floor":
		return part(t, string(m.State["base"]), kind)
	}
	return ""
}

// From every composition to every other: what is in both keeps its memory, and what is new knows of the last change.
func TestCarryOver(t *testing.T) {
	for _, from := range compositions {
		for _, to := range compositions {
			c, clock, o := newCluster(3), &clock{now: start}, &observer{value: 5}
			run := func(kinds string) k8s.Outcome {
				return tick(t, newLoop(t, c, o, clock, func(config *k8s.LoopConfig) { config.Policy = composed(t, kinds) }))
			}
			run(from)
			o.value = 500
			for range 3 {
				clock.pass()
				run(from)
			}
			before, changed := c.stored(t), len(c.Written) > 0
			p := composed(t, to)
			fresh, err := p.MarshalJSON()
			require.NoError(t, err)
			stored, err := loop.CarryOver([]byte(c.ConfigMap.Data["state"]), p)
			require.NoError(t, err, "%s to %s", from, to)
			after, err := p.MarshalJSON()
			require.NoError(t, err)
			require.JSONEq(t, string(fresh), string(after), "the policy is fresh as it was")
			c.ConfigMap.Data["state"] = string(stored)
			for _, kind := range []string{"realtime", "proportional", "cron"} {
				if strings.Contains(from, kind) && strings.Contains(to, kind) && part(t, before, kind) != "" && part(t, c.stored(t), kind) != "" {
					require.JSONEq(t, part(t, before, kind), part(t, c.stored(t), kind), "%s to %s", from, to)
				}
			}
			if changed && strings.Contains(to, "realtime") {
				var e struct{ State realtime.State }
				require.NoError(t, json.Unmarshal([]byte(part(t, c.stored(t), "realtime")), &e))
				require.True(t, e.State.LastUp.Set || e.State.LastDown.Set, "%s to %s", from, to)
			}
			replicas := c.Replicas("llama")
			clock.pass()
			out := run(to)
			require.NoError(t, out.Err())
			if changed && to == "realtime" {
				require.Equal(t, replicas, c.Replicas("llama"), "the cooldown runs")
			}
		}
	}
}

// Writes that are open, and whose they are, are carried over.
func TestCarryOverOpenWrite(t *testing.T) {
	c, clock, l := breached(t, nil)
	arrive := c.Delay(nothing)
	_, err := l.Tick(t.Context())
	require.ErrorIs(t, err, k8s.ErrUncertain)
	p := composed(t, "realtime+cron")
	stored, err := loop.CarryOver([]byte(c.ConfigMap.Data["state"]), p)
	require.NoError(t, err)
	require.Contains(t, string(stored), `"id":"uid-llama"`)
	c.ConfigMap.Data["state"] = string(stored)
	arrive()
	clock.pass()
	l = newLoop(t, c, &observer{value: 50}, clock, func(config *k8s.LoopConfig) { config.Policy = p })
	require.True(t, tick(t, l).Settled)
	holds(t, c, clock, l)
}

// States of earlier versions, and those of a policy alone, are carried over; what cannot be read is refused.
func TestCarryOverOldState(t *testing.T) {
	p := policy(t)
	p.Applied(start, 2, 3)
	bare, err := p.MarshalJSON()
	require.NoError(t, err)
	for _, stored := range []string{string(bare), `{"kind":"k8s.loop","version":1,"policy":` + string(bare) + `}`} {
		state, err := loop.CarryOver(k8s.UpgradeState([]byte(stored)), composed(t, "realtime+proportional"))
		require.NoError(t, err)
		var e struct {
			State struct{ Group json.RawMessage }
		}
		require.NoError(t, json.Unmarshal(state, &e))
		require.JSONEq(t, string(bare), part(t, string(e.State.Group), "realtime"))
	}
	for _, stored := range []string{
		"", "{", `{"kind":"k8s.loop","version":2,"policy":{}}`, `{"kind":"highest","version":1,"state":[]}`,
		`{"kind":"realtime","version":99,"state":{}}`,
	} {
		p := composed(t, "realtime+cron")
		fresh, err := p.MarshalJSON()
		require.NoError(t, err)
		_, err = loop.CarryOver(k8s.UpgradeState([]byte(stored)), p)
		require.Error(t, err, stored)
		after, err := p.MarshalJSON()
		require.NoError(t, err)
		require.JSONEq(t, string(fresh), string(after))
	}
}
