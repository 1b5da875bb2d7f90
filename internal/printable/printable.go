// Package printable has the rule of names that come from files and end in tables, messages and manifests.
package printable

import (
	"strings"
	"unicode"
)

// Rule is what a name must be.
const Rule = "must be of printable characters"

// Is reports whether a name has nothing that moves a cursor, ends a line, turns the direction of what follows or cannot be seen.
func Is(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}
