package scalingtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// Transcript writes an episode as text: an entry at each turn, with the time and the whole explanation. A turn is a decision
// that acts, the decision after it, and any decision whose chain has other codes than the one before. The text is compared
// with testdata/name, as Golden does; each decision must be explained.
func Transcript(tb testing.TB, name string, p scaling.Policy, e Episode) {
	tb.Helper()
	var o Options
	o, err := o.withDefaults()
	if err != nil {
		tb.Fatal(err)
	}
	s := &subject{asGroup(func() scaling.Policy { return p }), o}
	moments, f := s.play(&e)
	if f != nil {
		tb.Fatalf("%s\n%s", f.what, f.tables)
	}
	var story strings.Builder
	last := ""
	for i := range moments {
		m := &moments[i]
		if err := Explained(&m.d); err != nil {
			tb.Errorf("at %s: %v\n%s", m.elapsed, err, m.d.Explain())
		}
		chain := codes(&m.d)
		if m.d.Acts() || chain != last {
			fmt.Fprintf(&story, "%s  %s", m.now.Format(time.TimeOnly), m.d.Explain())
			last = chain
		}
		if m.applied {
			last = ""
		}
	}
	Golden(tb, name, story.String())
}

// codes returns the codes of a decision's whole chain.
func codes(d *scaling.Decision) string {
	return list(d.Steps(), " ", func(s scaling.Step) string { return s.Code.String() })
}
