package keda

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unique"
)

// An external is a trigger of a ScaledObject that calls an external scaler.
type external struct {
	Type       string            `json:"type"`
	MetricType MetricType        `json:"metricType,omitempty"`
	Metadata   map[string]string `json:"metadata"`
	Index      int               `json:"index,omitempty"` // in spec.triggers
}

// externals returns the triggers that call an external scaler. Triggers that cannot be read are left to KEDA and the schema.
func externals(triggers []json.RawMessage) []external {
	var all []external
	for i, raw := range triggers {
		var t external
		if json.Unmarshal(raw, &t) == nil && (t.Type == "external" || t.Type == "external-push") {
			t.Index = i
			all = append(all, t)
		}
	}
	return all
}

func (o Object) externals() []external {
	var all []external
	if o.triggers == (unique.Handle[string]{}) {
		return nil
	}
	_ = json.Unmarshal([]byte(o.triggers.Value()), &all) // the function text has written it
	return all
}

// sends reports whether KEDA may send the metadata sent for this trigger: KEDA fills in values from the environment.
func (t *external) sends(sent map[string]string) bool {
	for key, value := range t.Metadata {
		is, ok := sent[key]
		if !strings.HasSuffix(key, fromEnv) && (!ok || is != value) {
			return false
		}
	}
	for key := range sent {
		if _, ok := t.Metadata[key]; !ok {
			return false
		}
	}
	return true
}

// metricTypeIn returns the metricType of the trigger. KEDA does not send it, but the ScaledObject has it: at the trigger with
// these metadata or, if there is none because KEDA and this process know different versions of the ScaledObject, at all
// triggers of this scaler. If the ScaledObject does not tell, or there is none, the metricType of the metadata counts.
func (m *Metadata) metricTypeIn(o Object) (MetricType, error) {
	all := o.externals()
	own := slices.DeleteFunc(slices.Clone(all), func(t external) bool { return !t.sends(m.sent) })
	if len(own) == 0 {
		own = slices.DeleteFunc(all, func(t external) bool { return t.Metadata["scalerName"] != m.ScalerName })
	}
	var types []MetricType
	for _, t := range own {
		if t.MetricType == "" {
			t.MetricType = AverageValue
		}
		if !slices.Contains(types, t.MetricType) {
			types = append(types, t.MetricType)
		}
	}
	given := m.keys["metricType"] != ""
	wrong := func(value MetricType, rule string) error { return m.fault("metricType", string(value), rule) }
	switch {
	case len(types) == 0:
		return m.MetricType, nil
	case len(types) > 1 && given && slices.Contains(types, m.MetricType) && !own[0].sends(m.sent):
		return m.MetricType, nil
	case len(types) > 1:
		return "", wrong(m.MetricType, "must tell this trigger from others of the ScaledObject, whose own metricType is another")
	case m.Mode == Replicas && types[0] != AverageValue:
		return "", wrong(types[0], "must be AverageValue in mode replicas: the trigger's own is multiplied by the ready pods")
	case given && types[0] != m.MetricType:
		return "", wrong(m.MetricType, "must be the trigger's own metricType, "+shortened(string(types[0]))+", or not be given")
	}
	return types[0], nil
}

// with returns the object with other external triggers.
func (o Object) with(all []external) Object {
	o.triggers = unique.Make(text(all))
	o.owners = &owners{of: o.externals}
	return o
}

// same reports whether two versions of a ScaledObject are equal.
func (o Object) same(other Object) bool {
	o.owners, other.owners = nil, nil
	return o == other
}

// owners counts the triggers that keep a state, by the owner of the state. It parses their metadata once, at the first use,
// because each trigger of a ScaledObject uses it.
type owners struct {
	of     func() []external
	once   sync.Once
	count  map[string]int
	states map[string]bool // identities of all states; nil if the identity of any trigger is unknown
}

func (w *owners) has(owner string) int {
	if w == nil {
		return 0
	}
	w.once.Do(w.read)
	return w.count[owner]
}

// identities returns the identities of the triggers' states, for scalers of any name, or false if any of them is unknown.
func (w *owners) identities() (map[string]bool, bool) {
	if w == nil {
		return nil, false
	}
	w.once.Do(w.read)
	return w.states, w.states != nil
}

func (w *owners) read() {
	w.count = make(map[string]int)
	states, told := make(map[string]bool), true
	for _, t := range w.of() {
		m, err := ParseMetadata(t.Metadata)
		if err == nil && m.Mode == Replicas {
			w.count[m.owner()]++
			states[m.identity()] = true
		}
		told = told && (!t.named() || err == nil && !t.fromEnvironment())
	}
	if told {
		w.states = states
	}
}

// named reports whether the trigger names a scaler, as those of this kind do.
func (t *external) named() bool {
	return t.Metadata["scalerName"] != "" || t.Metadata["scalerName"+fromEnv] != ""
}

// fromEnvironment reports whether KEDA takes a value from the environment. That value is unknown before KEDA sends it.
func (t *external) fromEnvironment() bool {
	for key := range t.Metadata {
		if strings.HasSuffix(key, fromEnv) {
			return true
		}
	}
	return false
}

// shares reports whether another trigger of the ScaledObject would keep its state under the same key.
func (m *Metadata) shares(o Object) bool {
	return m.Mode == Replicas && o.owners.has(m.owner()) > 1
}
