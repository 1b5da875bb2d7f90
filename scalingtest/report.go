package scalingtest

import "fmt"

// A report is a failure that is formatted when it is printed: what is wrong, the table of the run and the test to paste.
type report struct {
	property *property
	subject  *subject
	episode  *Episode
}

// String makes the episode smaller still, where that is possible without drawing it again, and describes it.
func (r *report) String() string {
	e, f := r.smallest()
	if f == nil { // a policy that does not give the same answers each time
		return r.property.name + " does not hold each time for\n\n" + pasteable(r.property, &r.subject.options, &e)
	}
	return fmt.Sprintf("%s: %s\n%s\nThe same as a test:\n\n%s", r.property.name, f.what, f.tables, pasteable(r.property, &r.subject.options, &e))
}

// smallest leaves out the ticks after the failure, then every tick without which the property still fails.
func (r *report) smallest() (Episode, *failed) {
	e := *r.episode
	f := r.property.check(r.subject, &e)
	try := func(smaller Episode) bool {
		again := r.property.check(r.subject, &smaller)
		if again != nil {
			e, f = smaller, again
		}
		return again != nil
	}
	if f != nil && f.ticks < e.count() {
		try(e.until(f.ticks))
	}
	for i := 0; i < len(e.Ticks) && len(e.Ticks) > 1 && !r.property.whole; {
		if !try(e.without(i)) {
			i++
		}
	}
	for i := range e.Ticks {
		if e.Ticks[i].Times > 1 && !r.property.whole {
			once := e
			once.Ticks = append([]Tick(nil), e.Ticks...)
			once.Ticks[i].Times = 0
			try(once)
		}
	}
	return e, f
}
