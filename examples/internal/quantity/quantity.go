// Package quantity is for quantities of Kubernetes that nobody has judged yet.
package quantity

import "strings"

// Rule is what a quantity must be.
const Rule = "must be a quantity of 32 characters and an exponent of two digits at most"

const most = 32 // characters

// IsShort reports whether a quantity can be read at once. To read one like 1e-99999999, all its digits are written out to be rounded.
func IsShort(text string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	exponent = strings.TrimLeft(exponent, "+-")
	return len(text) <= most && len(exponent)-len(strings.TrimLeft(exponent, "0123456789")) <= 2
}
