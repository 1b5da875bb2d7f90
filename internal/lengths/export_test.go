package lengths

// SweepsOf is for tests.
func SweepsOf(n int) int { return sweepsOf(n) }
