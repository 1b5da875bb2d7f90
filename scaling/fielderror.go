package scaling

import (
	"errors"
	"fmt"
	"strconv"
)

// A FieldError names a wrong field of a configuration, its value and the rule that it breaks.
type FieldError struct {
	Field string // path of the field in its configuration, as in "metrics[1].high"
	Value any    // the field's value
	Rule  string // the rule, as in "must be above low"
}

// Error returns "field: value: rule".
func (e *FieldError) Error() string {
	if s, ok := e.Value.(string); ok {
		return e.Field + ": " + strconv.Quote(s) + ": " + e.Rule
	}
	return fmt.Sprintf("%s: %v: %s", e.Field, e.Value, e.Rule)
}

// FieldErrors collects all wrong fields of a configuration, so that a user can fix them in one go. The zero value is ready to
// use.
type FieldErrors struct {
	errs []error
}

// Check adds a FieldError unless ok.
func (e *FieldErrors) Check(ok bool, field string, value any, rule string) {
	if !ok {
		e.errs = append(e.errs, &FieldError{Field: field, Value: value, Rule: rule})
	}
}

// Add adds err, unless it is nil.
func (e *FieldErrors) Add(err error) {
	if err != nil {
		e.errs = append(e.errs, err)
	}
}

// Err returns all added errors, joined by errors.Join, or nil.
func (e *FieldErrors) Err() error {
	return errors.Join(e.errs...)
}
