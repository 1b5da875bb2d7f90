package defaulting

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/inferscale/inferscale/internal/printable"
)

// defaultSpec adds the defaults that belong to the whole object.
func (d *Defaulter) defaultSpec(r *review, spec object, ours []trigger) {
	at := path{"spec"}
	want := object{}
	if n := d.minReplicas(spec); n >= 1 && !slices.ContainsFunc(ours, trigger.toZero) {
		want["minReplicaCount"] = n
	}
	m := together(ours)
	if b := d.behavior[m]; len(b) > 0 {
		want["advanced"] = object{"horizontalPodAutoscalerConfig": object{"behavior": b}}
	}
	r.fill(at, spec, want)

	for _, name := range []string{"min", "max"} {
		if spec[name+"Replicas"] != nil {
			r.warn(at.child(name+"Replicas"), "unknown field, which the API server drops: the field is "+name+"ReplicaCount")
		}
	}
	if m == modeMetric && isZero(spec["minReplicaCount"]) {
		r.warn(at.child("minReplicaCount"), "0 has no effect in mode metric: the scaler is active as long as its target exists")
	}
	d.warnBehavior(r, spec, m)
}

// minReplicas returns the default of minReplicaCount for this spec; less than 1 means none. KEDA refuses a minReplicaCount
// above maxReplicaCount; for this comparison it counts a minReplicaCount of 0 as 1.
func (d *Defaulter) minReplicas(spec object) int64 {
	n := int64(d.config.MinReplicas)
	if limit, ok := spec["maxReplicaCount"].(json.Number); ok {
		if m, err := limit.Int64(); err == nil {
			n = min(n, m)
		}
	}
	return n
}

// warnBehavior warns of wrong or surprising settings in the HPA's behavior.
func (d *Defaulter) warnBehavior(r *review, spec object, m mode) {
	behavior := []string{"advanced", "horizontalPodAutoscalerConfig", "behavior"}
	have, at := below(spec, behavior...), path{"spec"}
	for _, key := range behavior {
		at = at.child(key)
	}
	for _, direction := range []string{"scaleUp", "scaleDown"} {
		given, _ := have[direction].(object)
		at := at.child(direction)
		if n, ok := given["tolerance"].(json.Number); ok {
			if _, err := n.Int64(); err != nil {
				r.warn(at.child("tolerance"), fmt.Sprintf("the number %s is refused by the schema: write it in quotes", printable.Cut(n.String(), longest)))
			}
		}
		if other, ok := d.leftover(m, direction, given); ok {
			r.warn(at, fmt.Sprintf("is the default of mode %s, and kept in mode %s: remove it to get the other", other, m))
		}
	}
	wanted, _ := d.behavior[m]["scaleUp"].(object)
	given, _ := have["scaleUp"].(object)
	if m == modeMetric && wanted["policies"] != nil && given["policies"] == nil && hasCron(spec) {
		r.warn(at.child("scaleUp").child("policies"), "limit the cron triggers beside it too: give policies of your own if they ask for more at once")
	}
}

// leftover reports whether the rules of a direction are the defaults of the other mode, which were added before a change of
// mode.
func (d *Defaulter) leftover(m mode, direction string, given object) (mode, bool) {
	other := map[mode]mode{modeMetric: modeReplicas, modeReplicas: modeMetric}[m]
	theirs, _ := d.behavior[other][direction].(object)
	return other, len(given) > 0 && reflect.DeepEqual(given, theirs) && !reflect.DeepEqual(d.behavior[m][direction], d.behavior[other][direction])
}

// below returns the object at a path of keys, or nil if there is none.
func below(o object, keys ...string) object {
	for _, key := range keys {
		o, _ = o[key].(object)
	}
	return o
}

func hasCron(spec object) bool {
	triggers, _ := spec["triggers"].([]any)
	return slices.ContainsFunc(triggers, func(raw any) bool {
		t, _ := raw.(object)
		return t["type"] == "cron"
	})
}

func isZero(v any) bool {
	n, _ := v.(json.Number)
	i, err := n.Int64()
	return err == nil && i == 0
}
