package keda

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/internal/typed"
)

// Limits of errors about metadata. They appear in KEDA's log and in events, and the author of a ScaledObject could make them
// arbitrarily long.
const (
	mostValue  = 60
	mostRule   = 300
	mostFaults = 20
)

// A hidden replaces a value that must not be shown: one that KEDA took from the environment of the target's container, which
// has tokens, and the value of an unknown key.
type hidden struct{}

func (hidden) String() string { return "(not shown)" }

// shown returns the value of a key, or of a field within it, for an error. keys has the spelling of each key in the metadata.
func shown(keys map[string]string, key string, value any) any {
	if secret(keys, key) {
		return hidden{}
	}
	if s, ok := value.(string); ok {
		return shortened(s)
	}
	return value
}

// secret reports whether the value of a key, or of a field within it, is from the environment.
func secret(keys map[string]string, key string) bool { return environment(keys, key) != "" }

// environment returns the spelling of the key through which a value is from the environment, or "" if it is not.
func environment(keys map[string]string, key string) string {
	for name, written := range keys {
		rest, within := strings.CutPrefix(key, name)
		if written != name && strings.HasSuffix(written, fromEnv) && within && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return written
		}
	}
	return ""
}

// leastVeiled is the minimum length of values from the environment that are removed from errors of pods and the API server: a
// port is not a secret, and a short text such as 5 is everywhere.
const leastVeiled = 6

// veiled returns an error without the values that KEDA took from the environment.
func (m *Metadata) veiled(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	var values []string
	for key, value := range m.sent {
		if value = strings.TrimSpace(value); strings.HasSuffix(key, fromEnv) && len(value) >= leastVeiled {
			values = append(values, value)
		}
	}
	// The longest first: one may be part of another, whose rest would stay.
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, value := range values {
		inside := strconv.Quote(value)
		for _, form := range []string{value, inside[1 : len(inside)-1], url.PathEscape(value), url.QueryEscape(value), (&url.URL{Path: value}).EscapedPath()} {
			text = strings.ReplaceAll(text, form, hidden{}.String())
		}
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

func quoted(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprint(v)
}

func shortened(text string) string { return printable.Cut(text, mostValue) }

// few limits the number of joined errors.
func few(err error) error {
	all := typed.Split(err)
	if len(all) <= mostFaults {
		return err
	}
	rest := fmt.Errorf("and %d more", len(all)-mostFaults)
	return errors.Join(append(all[:mostFaults:mostFaults], rest)...)
}
