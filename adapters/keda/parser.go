package keda

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// A parser reads the keys of metadata one after the other.
type parser struct {
	given map[string]string // keys that have not been read yet, without FromEnv
	keys  map[string]string // the spelling of each key in the metadata
	errs  scaling.FieldErrors
	m     Metadata
}

// sort stores the metadata under the names that the keys have here, without FromEnv.
func (p *parser) sort(metadata map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		name := key
		if _, taken := metadata[strings.TrimSuffix(key, fromEnv)]; !taken {
			name = strings.TrimSuffix(key, fromEnv)
		}
		p.given[name], p.keys[name] = metadata[key], key
	}
	p.m.address = p.given["scalerAddress"]
	for _, key := range kedaKeys() {
		delete(p.given, key)
	}
}

// take removes a key and returns its value, and whether it was given.
func (p *parser) take(key string) (string, bool) {
	value, ok := p.given[key]
	delete(p.given, key)
	return strings.TrimSpace(value), ok
}

// alias takes the value of one of two keys with the same meaning.
func (p *parser) alias(key, other string) string {
	value, ok := p.take(key)
	second, too := p.take(other)
	if ok && too && value != second {
		p.wrong(other, second, fmt.Sprintf("must be that of %s, %s, or not be given", key, quoted(shown(p.keys, key, value))))
	}
	if !ok && too {
		p.keys[key] = p.key(other)
		return second
	}
	return value
}

func (p *parser) key(name string) string { return cmp.Or(p.keys[name], name) }

func (p *parser) wrong(key string, value any, rule string) { p.check(false, key, value, rule) }

func (p *parser) check(ok bool, key string, value any, rule string) {
	p.errs.Check(ok, shortened(p.key(key)), shown(p.keys, key, value), rule)
}

// misfit reports an error about a value. The error's text can quote the value, so it is left out if the value is secret.
func (p *parser) misfit(key, value, rule string, err error) {
	if !secret(p.keys, key) {
		rule += ": " + printable.Cut(strings.Join(strings.Fields(err.Error()), " "), mostRule)
	}
	p.wrong(key, value, rule)
}

func (p *parser) choice(key, otherwise string, choices ...string) string {
	value, ok := p.take(key)
	if !ok {
		return otherwise
	}
	if !slices.Contains(choices, value) {
		p.wrong(key, value, "must be "+strings.Join(choices, " or "))
		return otherwise
	}
	return value
}

func (p *parser) count(key string, least int32) *int32 {
	text, ok := p.take(key)
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < int64(least) {
		p.wrong(key, text, fmt.Sprintf("must be a whole number between %d and %d", least, math.MaxInt32))
		return nil
	}
	count := int32(n)
	return &count
}

// misread replaces a threshold that cannot be read, so that the rest can be checked nevertheless. It is above usual
// thresholds.
const misread = greatestValue / 10

// number reads a threshold.
func (p *parser) number(key, text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= leastTarget && math.Round(v*1e3)/1e3 < greatestValue) {
		p.wrong(key, text, fmt.Sprintf("must be a number from %g to below %g: KEDA counts in thousandths", leastTarget, float64(greatestValue)))
		return misread
	}
	return v
}

// duration reads seconds or a duration.
func (p *parser) duration(key string, otherwise, least, most time.Duration) time.Duration {
	text, ok := p.take(key)
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if seconds, e := strconv.ParseFloat(text, 64); e == nil && math.Abs(seconds) < 1e9 {
		d, err = time.Duration(math.Round(seconds*1e3))*time.Millisecond, nil
	}
	if err != nil || d < least || d > most {
		p.wrong(key, text, fmt.Sprintf(`must be seconds or a duration, as 5 or "5s", between %s and %s`, least, most))
		return otherwise
	}
	return d
}

// decimal returns the Decimal of a number, rounded to nine decimals.
func decimal(v float64) policy.Decimal {
	text := strconv.FormatFloat(v, 'f', 9, 64)
	return policy.NewDecimal(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}
