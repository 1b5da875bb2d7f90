// Package long is for tests that simulate hours of traffic, or fill memory, on one goroutine or as shorter tests of their package do.
package long

import (
	"strconv"
	"testing"
)

// Slow reports whether such a test takes several times as long and shows nothing new: under the race detector, which finds nothing in
// long ones that it does not find in short ones; with 32 bits, where numbers overflow in short ones, too; and with -short, which is for
// programs that are emulated and for modules as their users get them.
func Slow() bool { return Race || strconv.IntSize == 32 || testing.Short() }

// Skip skips such a test where it is slow.
func Skip(tb testing.TB) {
	tb.Helper()
	if Slow() {
		tb.Skip("takes long, and shows nothing new here")
	}
}
