package policy

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

const decimalRule = `must be a number that is not negative, as 40 or "0.9"`

// A Decimal is a number that is not negative and can have a fraction: 40, or "0.9". It is written in digits, below 1e12 and with
// at most nine decimals. In JSON it is a whole number or text. Its zero value is no number.
//
// It is no resource.Quantity: that writes 0.9 as 900m, and its comparison in a validation rule costs more than an API
// server allows.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:Pattern=`^[0-9]{1,12}(\.[0-9]{1,9})?$`
// +kubebuilder:validation:XValidation:rule="type(self) == string || (int(self) >= 0 && int(self) <= 999999999999)",messageExpression="string(self) + ': must be at least 0 and below 1e12'"
type Decimal struct { //nolint:recvcheck // only decoding needs a pointer
	text string `json:"-"`
}

// NewDecimal returns the Decimal with a text. Float tells whether the text is a valid number.
func NewDecimal(text string) Decimal { return Decimal{text} }

// decimal returns the Decimal of a number, rounded to nine decimals.
func decimal(v float64) Decimal {
	text := strconv.FormatFloat(v, 'f', 9, 64)
	return Decimal{strings.TrimSuffix(strings.TrimRight(text, "0"), ".")}
}

// String returns the text.
func (d Decimal) String() string { return d.text }

// Float returns the number, or an error if the text is not a valid number.
func (d Decimal) Float() (float64, error) {
	if !isDecimal(d.text) {
		return 0, fmt.Errorf("%q: "+decimalRule, d.text)
	}
	return strconv.ParseFloat(d.text, 64)
}

// isDecimal reports whether a text has a Decimal's pattern. A document can have thousands of decimals, and to compile the
// pattern for each would take most of the time of reading it.
func isDecimal(text string) bool {
	digits := func(text string, most int) bool {
		return len(text) >= 1 && len(text) <= most && strings.Trim(text, "0123456789") == ""
	}
	whole, fraction, found := strings.Cut(text, ".")
	return digits(whole, 12) && (!found || digits(fraction, 9))
}

// MarshalJSON writes a whole number as a number, anything else as text.
func (d Decimal) MarshalJSON() ([]byte, error) {
	if n, err := strconv.ParseInt(d.text, 10, 64); err == nil && strconv.FormatInt(n, 10) == d.text {
		return []byte(d.text), nil
	}
	return json.Marshal(d.text)
}

// UnmarshalJSON reads text, or a number.
func (d *Decimal) UnmarshalJSON(data []byte) error {
	var number json.Number
	if err := json.Unmarshal(data, &number); err == nil && number != "" {
		d.text = number.String()
		return nil
	}
	return json.Unmarshal(data, &d.text)
}

// portOf returns the number that a text is, if it is written as numbers are: not 0080 or +80, which an API server refuses.
func portOf(text string) (number int32, ok bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && strconv.FormatInt(n, 10) == text
}

// A PortNumber is the number of a port. In JSON it may have quotes, as the proposal's has.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:Pattern=`^([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`
// +kubebuilder:validation:XValidation:rule="type(self) == string || (int(self) >= 1 && int(self) <= 65535)",messageExpression="string(self) + ': must be between 1 and 65535'"
type PortNumber struct { //nolint:recvcheck // only decoding needs a pointer
	number int32 `json:"-"`
}

// NewPortNumber returns the PortNumber of a number.
func NewPortNumber(number int32) PortNumber { return PortNumber{number} }

// Int returns the number.
func (p PortNumber) Int() int { return int(p.number) }

// MarshalJSON writes the number.
func (p PortNumber) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, int64(p.number), 10), nil
}

// UnmarshalJSON reads a whole number, with or without quotes.
func (p *PortNumber) UnmarshalJSON(data []byte) error {
	text := string(data)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	n, ok := portOf(text)
	if !ok {
		return fmt.Errorf("port %s: must be a whole number", data)
	}
	p.number = n
	return nil
}
