// Package typed says in words of JSON and YAML what their readers say in those of Go, and takes joined errors apart.
package typed

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/scaling"
)

// Error returns the error of a value that has another type than its field as a scaling.FieldError, and others as they are, but for
// those of keys that are none.
func Error(err error) error {
	if err != nil && strings.Contains(err.Error(), "yaml: invalid map key") {
		return errors.New("must have no lists and mappings for keys")
	}
	wrong := new(json.UnmarshalTypeError)
	if !errors.As(err, &wrong) {
		return err
	}
	rule := "must be " + is(wrong.Type)
	if wrong.Field == "" {
		return errors.New(rule + ", and not: " + wrong.Value)
	}
	return &scaling.FieldError{Field: wrong.Field, Value: printable.Plain(wrong.Value), Rule: rule}
}

// Once is a field that must not be repeated, whether in lower or upper case.
type Once[T any] struct {
	Value T
	there bool
}

// UnmarshalJSON reads the field. What reads itself is not parsed twice.
func (o *Once[T]) UnmarshalJSON(text []byte) error {
	if o.there {
		return &scaling.FieldError{Field: "field", Value: printable.Cut(string(text), 40), Rule: "must be there once"}
	}
	o.there = true
	if own, ok := any(&o.Value).(json.Unmarshaler); ok {
		return own.UnmarshalJSON(text)
	}
	return json.Unmarshal(text, &o.Value)
}

// Split returns the errors that are joined in one, each by itself.
func Split(err error) (all []error) {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
	case errors.As(err, &joined):
		for _, e := range joined.Unwrap() {
			all = append(all, Split(e)...)
		}
	default:
		all = append(all, err)
	}
	return all
}

func is(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of at most %d bits", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number of at most %d bits that is not negative", t.Bits())
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	default:
		return "an object"
	}
}
