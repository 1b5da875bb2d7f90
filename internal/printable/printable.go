// Package printable has the rule of names that come from files and end in tables, messages and manifests, and says how much of a
// text a message shows.
package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rule is what a name must be.
const Rule = "must be of printable characters"

// Is reports whether a name is UTF-8 and has nothing that moves a cursor, ends a line, turns the direction of what follows or cannot be
// seen.
func Is(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Plain is a value that stands in an error without quotes.
type Plain string

// Cut returns a text as it is, or its first bytes and "...": so many that no letter is cut in two.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
