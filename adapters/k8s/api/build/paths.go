package build

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A rename says how the end, or the whole, of a constructor's path is called in an object. The longest match counts.
type rename struct{ from, to string }

var errOther = errors.New("is not valid") // what has no field

// add notes an error of a constructor, each of its fields under the name that it has in the object, and durations in
// seconds, as the object has them.
func (b *builder) add(err error, names []rename) {
	for _, e := range fields(err) {
		var field *scaling.FieldError
		if !errors.As(e, &field) {
			b.errs.Add(errors.Join(errOther, e))
			continue
		}
		value := field.Value
		if d, ok := value.(time.Duration); ok {
			value = int64(d / time.Second)
		}
		path := object(field.Field, names)
		told := path + " " + field.Rule
		if !b.told[told] && !b.unread[path] { // bounds are the concern of several constructors
			b.errs.Check(false, path, value, field.Rule)
		}
		b.told[told] = true
	}
}

// fields takes joined errors apart.
func fields(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, fields(e)...)
	}
	return all
}

// object returns the path in an object of a constructor's path, whose policies[1] "night".schedule has a name in it.
func object(path string, names []rename) string {
	path = regexp.MustCompile(`(\[[0-9]+\]) "(?:[^"\\]|\\.)*"`).ReplaceAllString(path, "$1")
	for _, n := range names {
		if index, rest, ok := indexed(path, n.from); ok {
			return strings.Replace(n.to, "[i]", index, 1) + rest
		}
	}
	return path
}

// indexed reports whether path begins with what pattern says, in which [i] stands for any index.
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

func boundsPaths() []rename {
	return []rename{{"bounds.min", "spec.minReplicas"}, {"bounds.max", "spec.maxReplicas"}}
}

func realtimePaths() []rename {
	const at = "spec.scaler.realtime."
	return append(boundsPaths(),
		rename{"metrics[i].name", at + "metrics[i].source.name"},
		rename{"metrics[i].high", at + "metrics[i].threshold.high"},
		rename{"metrics[i].low", at + "metrics[i].threshold.low"},
		rename{"up.step", at + "scaleUpRule.scaleStep"},
		rename{"up.cooldown", at + "scaleUpRule.cooldownSeconds"},
		rename{"up.window", at + "scaleUpRule.stabilizationWindowSeconds"},
		rename{"down.step", at + "scaleDownRule.scaleStep"},
		rename{"down.cooldown", at + "scaleDownRule.cooldownSeconds"},
		rename{"down.window", at + "scaleDownRule.stabilizationWindowSeconds"},
		rename{"period", "spec.intervalSeconds"},
		rename{"", at},
	)
}

func proportionalPaths() []rename {
	const at = "spec.scaler.proportional."
	return append(boundsPaths(),
		rename{"metrics[i].name", at + "metrics[i].source.name"},
		rename{"up.", at + "scaleUp."},
		rename{"down.", at + "scaleDown."},
		rename{"stableWindow", at + "stableWindowSeconds"},
		rename{"panic.window", at + "panic.windowSeconds"},
		rename{"stabilization.up", at + "stabilization.upSeconds"},
		rename{"stabilization.down", at + "stabilization.downSeconds"},
		rename{"rateLimits.up.limits[i].period", at + "rateLimits.up.limits[i].periodSeconds"},
		rename{"rateLimits.down.limits[i].period", at + "rateLimits.down.limits[i].periodSeconds"},
		rename{"", at},
	)
}

func cronPaths() []rename {
	const at = "spec.scaler.cron."
	return append(boundsPaths(),
		rename{"windows[i].replicas", at + "windows[i].targetReplicas"},
		rename{"", at},
	)
}

// scrapePaths leads from a metric to its source, which is where its terms and its endpoint come from.
func (b *builder) scrapePaths() []rename {
	var names []rename
	for i, path := range b.paths {
		m := "metrics[" + itoa(i) + "]."
		names = append(names,
			rename{m + "endpoint.scheme", path + ".protocol"},
			rename{m + "endpoint.", path + "."},
			rename{m + "terms[i].match", path + ".labels"},
			rename{m + "terms[i].families", path + ".name"},
			rename{m + "terms[i].quantile", path + ".quantile"},
			rename{m, path + "."},
		)
	}
	return append(names, rename{"interval", "spec.intervalSeconds"}, rename{"", "spec.scrape."})
}
