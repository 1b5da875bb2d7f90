package keda

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/inferscale/inferscale/internal/printable"
)

// What errors show of metadata: they end in KEDA's log and in events, and whoever wrote a ScaledObject decides on their
// length.
const (
	mostValue  = 60
	mostRule   = 300
	mostFaults = 20
)

// A hidden stands for a value that is nobody's business: what KEDA took from the environment of the target's container,
// where tokens are, and what belongs to no key of this scaler.
type hidden struct{}

func (hidden) String() string { return "(not shown)" }

// shown is what errors show of the value of a key, or of a field within it. Keys has how each was written.
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

// environment returns the key, as it was written, by which a value is from the environment; nothing if it is not.
func environment(keys map[string]string, key string) string {
	for name, written := range keys {
		rest, within := strings.CutPrefix(key, name)
		if written != name && strings.HasSuffix(written, fromEnv) && within && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return written
		}
	}
	return ""
}

// leastVeiled is the length from which a value from the environment is looked for in what pods and the API server said: a
// port is no secret, and a 5 is everywhere.
const leastVeiled = 6

// veiled returns an error without the values that KEDA took from the environment.
func (m *Metadata) veiled(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for key, value := range m.sent {
		if value = strings.TrimSpace(value); !strings.HasSuffix(key, fromEnv) || len(value) < leastVeiled {
			continue
		}
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

// each returns the errors that are joined in one, also those that were joined before.
func each(err error) (all []error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, each(e)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// few leaves out what is too many of joined errors.
func few(err error) error {
	all := each(err)
	if len(all) <= mostFaults {
		return err
	}
	rest := fmt.Errorf("and %d more", len(all)-mostFaults)
	return errors.Join(append(all[:mostFaults:mostFaults], rest)...)
}
