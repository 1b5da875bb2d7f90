package main

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/traces"
)

// list prints what there is to choose from.
func list(stdout io.Writer) error {
	out := bufio.NewWriter(stdout)
	fmt.Fprint(out, "TRACES (-trace)\n")
	for _, t := range traces.List() {
		what := fmt.Sprintf("%d requests in %s", t.Requests, t.Length.Round(time.Second))
		if t.Windows > 0 {
			what = fmt.Sprintf("%d windows in %d days", t.Windows, int(t.Length.Hours()/24))
		}
		fmt.Fprintf(out, "  %-24s  %s: %s\n  %-24s  %s, %s\n", t.Name, t.Title, what, "", t.Source, t.Licence)
	}
	fmt.Fprint(out, "\nPOLICIES (-policy)\n")
	w := world{Scenario: sim.Ramp(), bounds: scaling.Bounds{Min: 1, Max: 1}}
	all, err := w.policies()
	if err != nil {
		return err
	}
	more, err := w.onlyNamed()
	if err != nil {
		return err
	}
	for _, c := range append(append(all, w.references()...), more...) {
		fmt.Fprintf(out, "  %-24s  %s\n", c.name, c.note)
	}
	fmt.Fprint(out, "\nSERVERS (-server)\n")
	for _, p := range profiles() {
		fmt.Fprintf(out, "  %-24s  %s\n", p.name, p.server.Name)
	}
	return out.Flush()
}
