// Package enum has the names of constants that are counted up from 0.
package enum

import "strconv"

// Name returns the name of a value, or of one that has none its type and number, as Mode(7).
func Name[T int8 | uint8](v T, of string, names ...string) string {
	if v >= 0 && int(v) < len(names) {
		return names[v]
	}
	return of + "(" + strconv.Itoa(int(v)) + ")"
}
