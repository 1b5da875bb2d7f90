package defaulting

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/inferscale/inferscale/policy"
)

// A trigger is a trigger of this scaler.
type trigger struct {
	index  int
	fields object
	meta   object
}

// A mode is the meaning of a trigger's values.
type mode string

const (
	modeMetric   mode = "metric"   // the HPA decides by the values
	modeReplicas mode = "replicas" // the value is the decided count
	modeUnknown  mode = ""
)

// The keys of a trigger's metadata.
const (
	keyAddress       = "scalerAddress"
	keyEngine        = "engine"   // with keySignal, says what is scraped, and where
	keyFromEnv       = "FromEnv"  // a suffix: the value is an environment variable of the target
	keyInterval      = "interval" // between two scrapes
	keyMetricName    = "metricName"
	keyMetricPath    = "metricPath"
	keyMetricPort    = "metricPort"
	keyMetricType    = "metricType"
	keyMinReplicas   = "minReplicas"     // of mode replicas
	keyMisspelt      = "metricPorotocol" // the spelling of Kaito's proposal
	keyMode          = "mode"
	keyPolicy        = "policy" // of mode replicas: a policy's name, or a whole document
	keyProtocol      = "metricProtocol"
	keyScaler        = "scaler" // of mode replicas: a whole scaler
	keyScrapeTimeout = "scrapeTimeout"
	keySignal        = "signal"
	keyStateName     = "stateName" // of mode replicas: tells states apart
	keyThreshold     = "threshold"
)

func (t trigger) at() path {
	return path{"spec", "triggers", t.index}
}

// has reports whether the user has set a metadata key.
func (t trigger) has(key string) bool {
	return t.meta[key] != nil || t.meta[key+keyFromEnv] != nil
}

func (t trigger) mode() mode {
	if !t.has(keyMode) {
		return modeMetric
	}
	if m := mode(t.text(keyMode)); m == modeMetric || m == modeReplicas {
		return m
	}
	return modeUnknown
}

// text returns the value of a metadata key without surrounding spaces, or "" if it is not a string.
func (t trigger) text(key string) string {
	s, _ := t.meta[key].(string)
	return strings.TrimSpace(s)
}

// paths reports whether the rules are given only by their paths, such as cron.policies or realtime.metrics. The keys of the
// metric belong to a threshold, and there is none.
func (t trigger) paths() bool {
	if t.mode() != modeReplicas || t.has(keyThreshold) {
		return false
	}
	return t.given(func(kind, rest string) bool {
		return rest != "" && slices.Contains([]string{"realtime", "proportional", "capacity", "cron"}, kind)
	})
}

// whole reports whether one key has all the rules: scaler, or policy with a document in place of a name.
func (t trigger) whole() bool {
	return t.has(keyScaler) || strings.Contains(t.text(keyPolicy), ":") || t.meta[keyPolicy+keyFromEnv] != nil && !t.has(keyThreshold)
}

// names reports whether a rule's metrics are given by path, for example as realtime.metrics. One of them may also be the
// threshold's metric, and both must be read in the same way.
func (t trigger) names() bool {
	return t.mode() == modeReplicas && t.given(func(kind, rest string) bool {
		return (kind == "realtime" || kind == "proportional") && strings.HasPrefix(rest, "metrics")
	})
}

// given reports whether the metadata has a key for which is returns true. is gets the part before the first dot, and the
// rest.
func (t trigger) given(is func(kind, rest string) bool) bool {
	for key, value := range t.meta {
		if kind, rest, _ := strings.Cut(key, "."); value != nil && is(kind, rest) {
			return true
		}
	}
	return false
}

// toZero reports whether the trigger decides the count and may scale to 0.
func (t trigger) toZero() bool {
	switch {
	case t.mode() != modeReplicas:
		return false
	case t.has(keyMinReplicas):
		n, err := strconv.Atoi(t.text(keyMinReplicas))
		return err == nil && n == 0
	}
	for _, key := range []string{keyScaler, keyPolicy} { // a document has bounds of its own
		if text := t.text(key); strings.Contains(text, ":") {
			d, err := policy.Read([]byte(text), key)
			return err == nil && len(d.Policies) == 1 && d.Policies[0].MinReplicas != nil && *d.Policies[0].MinReplicas == 0
		}
	}
	return false
}

// together returns the mode that the HPA's behavior must suit: replicas if any trigger is in mode replicas, metric if all are
// in mode metric.
func together(ours []trigger) mode {
	m := modeMetric
	for _, t := range ours {
		if other := t.mode(); m == modeMetric || other == modeReplicas {
			m = other
		}
	}
	return m
}

// metricType returns the trigger's metricType, or its default. It returns "" if KEDA will refuse the type.
func (t trigger) metricType() string {
	switch v := t.fields[keyMetricType]; v {
	case nil, "", string(autoscalingv2.AverageValueMetricType):
		return string(autoscalingv2.AverageValueMetricType)
	case string(autoscalingv2.ValueMetricType):
		return string(autoscalingv2.ValueMetricType)
	}
	return ""
}

// defaultTrigger adds the defaults that a trigger lacks.
func (d *Defaulter) defaultTrigger(r *review, t trigger, formula bool) {
	if !d.config.Plaintext && t.fields["authenticationRef"] == nil {
		r.add(t.at().child("authenticationRef"), object{"kind": d.config.Auth.Kind, "name": d.config.Auth.Name})
	}
	want := object{}
	if s := t.metricType(); s != "" && !formula {
		want[keyMetricType] = s // with a formula, the metricType of its result counts instead
	}
	whole := t.whole() || t.paths()
	if !whole && !t.names() && !t.has(keyEngine) && !t.has(keySignal) {
		want[keyMetricName] = d.config.MetricName
		want[keyProtocol] = d.config.Protocol
		want[keyMetricPort] = d.config.Port
		want[keyMetricPath] = d.config.Path
	}
	if !whole && !t.has(keyInterval) {
		want[keyScrapeTimeout] = strconv.FormatInt(int64(d.config.ScrapeTimeout/time.Second), 10)
	}
	maps.DeleteFunc(want, func(key string, _ any) bool { return t.has(key) })
	if t.has(keyMisspelt) {
		delete(want, keyProtocol)
	}
	want[keyAddress] = d.config.Address
	r.fill(t.at().child("metadata"), t.meta, want)
	d.warnTrigger(r, t)
}

// warnTrigger warns of mistakes in a trigger.
func (d *Defaulter) warnTrigger(r *review, t trigger) {
	at := t.at().child("metadata")
	if t.has(keyMisspelt) {
		r.warn(at.child(keyMisspelt), "is read as "+keyProtocol+": write that")
	}
	if s, ok := t.meta[keyMode].(string); ok && t.mode() == modeUnknown {
		r.warn(at.child(keyMode), shown(s)+" is neither metric nor replicas")
	}
	if s, ok := t.meta[keyMetricType].(string); ok && t.metricType() != "" && t.text(keyMetricType) != t.metricType() {
		r.warn(at.child(keyMetricType), shown(s)+" contradicts the trigger's metricType, which is "+t.metricType())
	}
	if t.mode() == modeReplicas && t.metricType() != "" && t.metricType() != string(autoscalingv2.AverageValueMetricType) {
		r.warn(t.at().child(keyMetricType), t.metricType()+" does not suit mode replicas: the HPA would multiply the count by the ready pods")
	}
	if t.mode() == modeMetric && !t.has(keyThreshold) {
		r.warn(at.child(keyThreshold), "is required in mode metric")
	}
	for _, key := range slices.Sorted(maps.Keys(t.meta)) {
		if _, ok := t.meta[key].(string); !ok && t.meta[key] != nil {
			r.warn(at.child(key), "is not a string: write it in quotes")
		}
		if !d.known(key) {
			r.warn(at.child(key), "is not a key that "+shown(d.config.ScalerName)+" knows")
		}
	}
}

func (d *Defaulter) known(key string) bool {
	if d.config.Known == nil {
		return true
	}
	switch bare := strings.TrimSuffix(key, keyFromEnv); bare {
	case "scalerName", keyAddress, "enableTLS", "unsafeSsl": // KEDA's
		return true
	case keyEngine, keyInterval, keyMetricName, keyMetricPath, keyMetricPort, keyMetricType, keyMinReplicas, keyMisspelt, keyMode,
		keyProtocol, keyScaler, keyScrapeTimeout, keySignal, keyStateName, keyThreshold:
		return true
	default:
		return d.config.Known(key) || d.config.Known(bare)
	}
}
