package calibrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/scaling"
)

// deepest is the deepest nesting of a JSON document: far deeper than real ones.
const deepest = 100

// A tree is a document of maps.
type tree map[string]any

// A list stands for a JSON list outside of a scenario, whose content is not kept: nothing is read from it.
type list struct{}

// scenario is the key under which a report of llm-d says what was measured.
const scenario = "scenario"

// decode reads the next JSON value. A repeated key is an error, as in files with a server; the error at the end of the input
// is io.EOF.
func decode(in *json.Decoder, path string, depth int) (any, error) {
	token, err := in.Token()
	if errors.Is(err, io.EOF) && depth > 0 {
		err = io.ErrUnexpectedEOF
	}
	if depth > deepest {
		err = &scaling.FieldError{Field: path, Value: printable.Plain("deeper"), Rule: fmt.Sprintf("must be at most %d deep", deepest)}
	}
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		var all []any
		kept := strings.HasPrefix(path, scenario+".")
		for in.More() {
			x, err := decode(in, path, depth+1)
			if err != nil {
				return nil, err
			}
			if kept {
				all = append(all, x)
			}
		}
		_, err := in.Token()
		if kept {
			return all, unexpected(err)
		}
		return list{}, unexpected(err)
	case json.Delim('{'):
		t := map[string]any{}
		for in.More() {
			key, err := in.Token()
			if err != nil {
				return nil, unexpected(err)
			}
			name, _ := key.(string) // keys are always strings
			at := strings.TrimPrefix(path+"."+printable.Cut(name, mostShown), ".")
			_, twice := t[name]
			x, err := decode(in, at, depth+1)
			if err == nil && twice {
				err = &scaling.FieldError{Field: at, Value: told(x), Rule: "must be there once"}
			}
			if err != nil {
				return nil, err
			}
			t[name] = x
		}
		_, err := in.Token()
		return t, unexpected(err)
	}
	return token, nil
}

// unexpected is an error within a value.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// newDecoder reads JSON. Numbers stay as text, as one may be too large.
func newDecoder(data []byte) *json.Decoder {
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	return in
}

// unmarked returns a text without its byte order mark.
func unmarked(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// value returns the value at a path, or false if there is none.
func (t tree) value(path ...string) (x any, ok bool) {
	x = map[string]any(t)
	for _, name := range path {
		m, _ := x.(map[string]any)
		if x, ok = m[name]; !ok {
			return nil, false
		}
	}
	return x, true
}

// at returns the number at a path, in the given unit, or false if there is none.
func (t tree) at(path ...string) (float64, bool) {
	x, _ := t.value(path...)
	switch n := x.(type) {
	case int:
		return float64(n), true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case float64:
		return n, !math.IsNaN(n) && !math.IsInf(n, 0)
	}
	return 0, false
}

func (t tree) has(path ...string) bool {
	_, ok := t.value(path...)
	return ok
}

func (t tree) list(path ...string) []any {
	x, _ := t.value(path...)
	all, _ := x.([]any)
	return all
}

func (t tree) text(path ...string) string {
	x, _ := t.value(path...)
	s, _ := x.(string)
	return s
}

// mostShown is how many bytes of a value an error shows.
const mostShown = 80

// told returns the text of a value in an error.
func told(x any) any {
	switch x := x.(type) {
	case nil:
		return printable.Plain("null")
	case map[string]any:
		return printable.Plain("a mapping")
	case list, []any:
		return printable.Plain("a list")
	case string:
		return printable.Cut(x, mostShown)
	case json.Number:
		return printable.Plain(printable.Cut(x.String(), mostShown))
	}
	return x
}
