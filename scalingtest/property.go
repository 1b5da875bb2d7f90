package scalingtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// A property draws an episode and checks a policy on it.
type property struct {
	name  string
	on    func(o *Options) bool // nil for the properties that every policy has
	needs func(o *Options) bool // what a check requires; nil for nothing
	draw  func(t *rapid.T, o *Options) Episode
	check func(s *subject, e *Episode) *failed
	whole bool // whether the episode has another meaning if ticks are left out
}

// properties returns all properties in the order of their subtests.
func properties() []property {
	return append(common(), chosen()...)
}

func (p *property) isOn(o *Options) bool {
	return (p.on == nil || p.on(o)) && !slices.Contains(o.Skip, p.name)
}

// Run checks the properties that every policy has, and those that the options turn on, each in a subtest with its name. Each
// subtest plays random episodes with policies from newPolicy, which must return a new one in a fresh state each time. A
// failing episode is made as small as possible and printed as a table of its decisions, and as a Go test. Wrong options fail the
// test at once, with a *scaling.FieldError for each.
func Run(t *testing.T, newPolicy func() scaling.Policy, opts Options) {
	t.Helper()
	opts.require(t)
	RunDrawn(t, func(*rapid.T) (func() scaling.Policy, Options) { return newPolicy, opts })
}

// RunDrawn is Run for a policy with a configuration that is drawn too: draw is called before every episode. A property that
// the options never turn on is skipped.
func RunDrawn(t *testing.T, draw func(t *rapid.T) (newPolicy func() scaling.Policy, opts Options)) {
	t.Helper()
	runDrawn(t, func(t *rapid.T) (func() scaling.Group, Options) {
		newPolicy, opts := draw(t)
		return asGroup(newPolicy), opts
	})
}

func asGroup(newPolicy func() scaling.Policy) func() scaling.Group {
	return func() scaling.Group { return scaling.GroupOf(newPolicy()) }
}

func runDrawn(t *testing.T, draw func(t *rapid.T) (newGroup func() scaling.Group, opts Options)) {
	t.Helper()
	for _, p := range properties() {
		t.Run(p.name, func(t *testing.T) {
			t.Helper()
			if !p.tried(t, draw) {
				t.Skip("not switched on by the options")
			}
		})
	}
}

// Twin checks that a policy and a second implementation give the same answers in the same random episodes, as the option
// Twin of Run does.
func Twin(t *testing.T, newPolicy func() scaling.Policy, newTwin func() Naive, opts Options) {
	t.Helper()
	opts.Twin = newTwin
	opts.require(t)
	named("Twin").tried(t, func(*rapid.T) (func() scaling.Group, Options) { return asGroup(newPolicy), opts })
}

// Replay plays one episode and checks one property on it, named like the subtest of Run. The printed tests of failures call
// it. The options need no metrics.
func Replay(tb testing.TB, newPolicy func() scaling.Policy, opts Options, property string, e Episode) {
	tb.Helper()
	replay(tb, asGroup(newPolicy), opts, property, e)
}

func named(name string) *property {
	for _, p := range properties() {
		if p.name == name {
			return &p
		}
	}
	return nil
}

// tried checks the property on random episodes, and reports whether the options ever turned it on.
func (p *property) tried(t rapid.TB, draw func(t *rapid.T) (func() scaling.Group, Options)) (on bool) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		t.Helper()
		newGroup, opts := draw(t)
		o := opts.require(t)
		if !p.isOn(&o) {
			return
		}
		on = true
		e := rapid.Custom(func(t *rapid.T) drawn { return drawn{p.draw(t, &o)} }).Draw(t, "episode").Episode
		s := &subject{newGroup, o}
		if p.check(s, &e) != nil {
			// Only the log of the smallest case is shown, and only then is it formatted.
			t.Logf("%s", &report{p, s, &e})
			t.Fatalf("%s does not hold", p.name)
		}
	})
	return on
}

// drawn is an Episode that rapid does not print, since it is printed readably at the end.
type drawn struct{ Episode }

// GoString refers to that.
func (drawn) GoString() string { return "see below" }

// ran returns a check of every moment of an episode that is played unchanged.
func ran(look func(s *subject, m *moment) string) func(s *subject, e *Episode) *failed {
	return func(s *subject, e *Episode) *failed {
		p := s.player(e)
		p.after = func(m *moment) *failed {
			var what string
			if f := p.guard("looked at", func() *failed { what = look(s, m); return nil }); f != nil {
				return f
			}
			if what != "" {
				return p.fail("at %s %s", m.elapsed, what)
			}
			return nil
		}
		return p.run()
	}
}

// living returns a generator of episodes with the events of a life.
func living(l life) func(t *rapid.T, o *Options) Episode {
	return func(t *rapid.T, o *Options) Episode { return drawEpisode(t, o, l) }
}

func headline(d *scaling.Decision) string {
	head, _, _ := strings.Cut(d.Reason(), ":")
	return head
}

func action(d *scaling.Decision) string { return fmt.Sprintf("it says %s", headline(d)) }
