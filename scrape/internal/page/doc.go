// Package page reads the samples of wanted families out of a page in Prometheus' text format, piece by piece, in bounded
// memory.
//
//	r := page.NewReader(nil)
//	r.Reset(page.NewFilter([]string{"q"}), 10_000, func(int) bool { return true })
//	_, err := r.Read(ctx, body, 16<<20)
//	for s := r.First(0); s != nil; s = r.Next(s) { ... }
//
// Lines of other families are skipped, so damage there is not noticed. A malformed line of a wanted family is [Reader.Err] of
// that family: there is no partial answer. Names and numbers are those that expfmt and Prometheus read: module difftest
// compares them.
package page
