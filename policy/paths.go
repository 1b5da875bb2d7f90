package policy

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A rename maps the beginning, or the whole, of a path in a constructor's error to the path in a document. The first match
// counts.
type rename struct{ from, to string }

// faults collects errors, and knows without a look at all of them whether there are any and which fields they refuse: a document can
// have thousands of scalers.
type faults struct {
	scaling.FieldErrors

	any     bool
	refused map[string]bool // fields that the document's own rules have refused last
}

// Check adds an error of the document's own rules unless ok.
func (f *faults) Check(ok bool, field string, value any, rule string) {
	if !ok {
		f.FieldErrors.Check(false, field, value, rule)
		f.note(field, true)
	}
}

// Add adds errors of the document's own rules.
func (f *faults) Add(err error) {
	f.FieldErrors.Add(err)
	for _, e := range fieldErrors(err) {
		f.note(e.Field, true)
	}
}

func (f *faults) note(field string, refused bool) {
	if f.any = true; f.refused == nil {
		f.refused = make(map[string]bool)
	}
	f.refused[field] = refused
}

// add records the errors of a constructor. Each field gets its name and its unit in the document. Of a field that the document's
// own rules have refused it records none.
func (b *builder) add(err error, names []rename) {
	for _, field := range fieldErrors(err) {
		if field.Field == "" {
			b.errs.Add(field)
			continue
		}
		value := field.Value
		if d, ok := value.(time.Duration); ok {
			value = int64(d / time.Second)
		}
		path := object(field.Field, names)
		if seconds, ok := value.(float64); ok && strings.HasSuffix(path, "Microseconds") {
			value = seconds * 1e6
		}
		told := path + " " + field.Rule
		if !b.told[told] && !b.unread[path] && !b.errs.refused[path] { // several constructors check the bounds
			b.errs.FieldErrors.Check(false, path, value, field.Rule)
			b.errs.note(path, false)
		}
		b.told[told] = true
	}
}

// object returns the path in a document for a path in a constructor's error. The latter can have a name in it, as in
// policies[1] "night".schedule.
func object(path string, names []rename) string {
	if strings.Contains(path, `] "`) {
		path = regexp.MustCompile(`(\[[0-9]+\]) "(?:[^"\\]|\\.)*"`).ReplaceAllString(path, "$1")
	}
	for _, n := range names {
		if index, rest, ok := indexed(path, n.from); ok {
			return strings.Replace(n.to, "[i]", index, 1) + rest
		}
	}
	return path
}

// indexed reports whether path begins with pattern, in which [i] stands for any index.
func indexed(path, pattern string) (index, rest string, ok bool) {
	before, after, has := strings.Cut(pattern, "[i]")
	rest, ok = strings.CutPrefix(path, before)
	if !has || !ok {
		return "", rest, ok
	}
	end := strings.IndexByte(rest, ']') + 1
	if end == 0 || rest[0] != '[' {
		return "", "", false
	}
	index, rest = rest[:end], rest[end:]
	rest, ok = strings.CutPrefix(rest, after)
	return index, rest, ok
}

// boundsPaths returns the renames for the bounds. Bounds of the caller keep their names.
func (p *place) boundsPaths() []rename {
	if !p.known {
		return []rename{{"bounds.", "bounds."}}
	}
	return []rename{{"bounds.min", p.bounds + "minReplicas"}, {"bounds.max", p.bounds + "maxReplicas"}}
}

// realtimePaths returns the renames for a realtime scaler, for example at "spec.scaler.realtime.".
func (p *place) realtimePaths(root string) []rename {
	at := p.at + "realtime."
	return append(p.boundsPaths(),
		rename{"metrics[i].name", at + "metrics[i].source.name"},
		rename{"metrics[i].high", at + "metrics[i].threshold.high"},
		rename{"metrics[i].low", at + "metrics[i].threshold.low"},
		rename{"up.step", at + "scaleUpRule.scaleStep"},
		rename{"up.cooldown", at + "scaleUpRule.cooldownSeconds"},
		rename{"up.window", at + "scaleUpRule.stabilizationWindowSeconds"},
		rename{"down.step", at + "scaleDownRule.scaleStep"},
		rename{"down.cooldown", at + "scaleDownRule.cooldownSeconds"},
		rename{"down.window", at + "scaleDownRule.stabilizationWindowSeconds"},
		rename{"period", root + "intervalSeconds"},
		rename{"", at},
	)
}

func (p *place) proportionalPaths() []rename {
	at := p.at + "proportional."
	return slices.Concat(p.boundsPaths(), []rename{
		{"metrics[i].name", at + "metrics[i].source.name"},
		{"up.", at + "scaleUp."},
		{"down.", at + "scaleDown."},
		{"stableWindow", at + "stableWindowSeconds"},
		{"resolution", at + "resolutionSeconds"},
		{"panic.window", at + "panic.windowSeconds"},
	}, aroundPaths(at), []rename{{"", at}})
}

// aroundPaths returns the renames for the stabilization and the rate limits of a scaler at a path.
func aroundPaths(at string) []rename {
	return []rename{
		{"stabilization.up", at + "stabilization.upSeconds"},
		{"stabilization.down", at + "stabilization.downSeconds"},
		{"rateLimits.up.limits[i].period", at + "rateLimits.up.limits[i].periodSeconds"},
		{"rateLimits.down.limits[i].period", at + "rateLimits.down.limits[i].periodSeconds"},
		{"", at},
	}
}

func (p *place) saturationPaths() []rename {
	at := p.at + "saturation."
	return append(p.boundsPaths(),
		rename{"transitionTimeout", at + "transitionTimeoutSeconds"},
		rename{"downStabilization", at + "downStabilizationSeconds"},
		rename{"kvC", at + "kvC"}, rename{"kvS", at + "kvS"}, rename{"kv", at + "kvCacheSource"},
		rename{"queueL", at + "queueL"}, rename{"queueS", at + "queueS"}, rename{"queue", at + "queueSource"},
		rename{"", at},
	)
}

func (p *place) cronPaths() []rename {
	at := p.at + "cron."
	return append(p.boundsPaths(),
		rename{"windows[i].replicas", at + "windows[i].targetReplicas"},
		rename{"", at},
	)
}
