package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// An explanation is the changes that a policy made, and why.
type explanation struct {
	name   string
	origin time.Time // when its clock shows zero
	text   strings.Builder
}

// note writes down decisions that change something.
func (e *explanation) note(now time.Time, view *scaling.GroupObservation, decision *scaling.GroupDecision) {
	for i := range decision.Targets {
		d := &decision.Targets[i]
		if !d.Acts() {
			continue
		}
		since := int(now.Sub(e.origin).Seconds())
		fmt.Fprintf(&e.text, "%02d:%02d:%02d  ", since/3600, since/60%60, since%60)
		if name := view.Targets[i].Name; name != "" {
			fmt.Fprintf(&e.text, "%s  ", name)
		}
		e.text.WriteString(strings.TrimRight(d.Explain(), "\n"))
		e.text.WriteByte('\n')
	}
}

// explanations prints what every policy did.
func (c *comparison) explanations(w io.Writer) {
	for i := range c.explained {
		e := &c.explained[i]
		text := e.text.String()
		if text == "" {
			text = "no change\n"
		}
		fmt.Fprintf(w, "== %s, seed 1\n%s\n", e.name, text)
	}
}
