package saturation

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/inferscale/inferscale/scaling"
)

// A Target is the decision for one variant, and the reasons.
type Target struct {
	Variant string `json:"variant"`
	// Price is the cost per capacity, by which variants are compared. It is known if IsPriced is set.
	Price    float64 `json:"price"`
	IsPriced bool    `json:"isPriced"`
	// Reporting is how many rows the variant has.
	Reporting int32 `json:"reporting"`
	// Decision asks for a write only if it Acts. Its chain begins with the joint state of the replicas, which moves the count of
	// the variant that was chosen, followed by what it means for this variant.
	Decision scaling.Decision `json:"decision"`
}

// A Plan is the answer for a model: a target for every variant that has a state or a replica. It also carries scratch space,
// so that a caller who passes the same Plan again allocates nothing. Its content is valid until then.
type Plan struct {
	// Targets are in order of the variants' names.
	Targets []Target

	candidates  []candidate
	order       []int32
	transitions []Transition
	remarks     [3]remark
	said        int // number of remarks
	chosen      int // index of the target that the first remark moves, and by how many replicas; 0 is none
	by          int32
	last        remark
}

// MarshalJSON writes the decision for the model and the targets, for logs and status fields.
func (p *Plan) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Model   scaling.Decision `json:"model"`
		Targets []Target         `json:"targets"`
	}{p.Model(), p.Targets})
}

// Target returns the target of a variant, or nil.
func (p *Plan) Target(variant string) *Target {
	i, ok := slices.BinarySearchFunc(p.Targets, variant, func(t Target, name string) int { return strings.Compare(t.Variant, name) })
	if !ok {
		return nil
	}
	return &p.Targets[i]
}

// Explain returns the plan as a table: the reason, and what it means for each variant. For llm-d's first example:
//
//	Up 4 -> 5
//	  ShortQueue        4 -> 5    v1-l4-0 spare=2.5 < trigger=3, saturated=0, replicas=4
//	  Cheapest          5 -> 5    v1-l4 price=5 <= next=20
//	variant          price report     count        verdict rule
//	v1-l4                5      2      2 -> 3      Up      Cheapest v1-l4 price=5 <= next=20
//	v2-a100             20      2      2 -> 2      Hold    Dearer v1-l4 price=20 >= cheapest=5
func (p *Plan) Explain() string {
	var b strings.Builder
	model := p.Model()
	b.WriteString(model.Explain())
	width := 12
	for i := range p.Targets {
		width = max(width, len(p.Targets[i].Variant))
	}
	fmt.Fprintf(&b, "%-*s %9s %6s  %-15s %-7s %s\n", width, "variant", "price", "report", "   count", "verdict", "rule")
	for i := range p.Targets {
		t := &p.Targets[i]
		d := &t.Decision
		price := "-"
		if t.IsPriced {
			price = fmt.Sprintf("%.4g", t.Price)
		}
		var rule string
		for _, s := range d.Steps() {
			if s.Branch == 0 {
				rule = strings.TrimRight(s.Code.String()+" "+s.Because(), " ")
			}
		}
		fmt.Fprintf(&b, "%-*s %9s %6d  %5d -> %-6d %-7s %s\n", width, t.Variant, price, t.Reporting, d.From, d.Replicas, d.Verdict, rule)
	}
	return b.String()
}

// A remark is a step with which every target begins.
type remark struct {
	code    scaling.Code
	subject string
	numbers [4]float64
}

// say adds a remark.
func (p *Plan) say(code scaling.Code, subject string, numbers ...float64) {
	r := &p.remarks[p.said]
	p.said++
	r.code, r.subject, r.numbers = code, subject, [4]float64{}
	copy(r.numbers[:], numbers)
}

// A candidate is a variant in the decision.
type candidate struct {
	place     int32   // index in the variants given; -1 if there is no state
	rows      int32   // replicas that report
	current   int32   // the count decided on
	wish      int32   // the count it is in transition to
	kind      kind    // what is known of it
	moving    bool    // in transition
	stuck     bool    // in transition for longer than the timeout
	waited    int64   // time in transition, in milliseconds
	price     float64 // cost per capacity
	capacity  float64
	bounds    scaling.Bounds
	isPending int32
}

type kind int8

const (
	known kind = iota
	noState
	contradicted
	invalid
)

// collect adds a candidate for every variant that has a state or a replica, in order of names.
func (p *Plan) collect(a *Analysis, variants []Variant, literal bool) {
	p.candidates, p.Targets, p.order, p.said, p.last = p.candidates[:0], p.Targets[:0], p.order[:0], 0, remark{}
	p.by = 0
	sorted := true
	for i := range variants {
		p.order = append(p.order, int32(i))
		sorted = sorted && (i == 0 || variants[i-1].Name < variants[i].Name)
	}
	if !sorted {
		slices.SortStableFunc(p.order, func(i, j int32) int { return strings.Compare(variants[i].Name, variants[j].Name) })
	}
	next := 0
	for i := 0; i < len(p.order); {
		name := variants[p.order[i]].Name
		for ; next < len(a.Variants) && a.Variants[next].Variant < name; next++ {
			p.addNoState(&a.Variants[next], literal)
		}
		end := i + 1
		for end < len(p.order) && variants[p.order[end]].Name == name {
			end++
		}
		s := p.add(variants, p.order[i:end], literal)
		if next < len(a.Variants) && a.Variants[next].Variant == name {
			s.rows = int32(min(a.Variants[next].Replicas, math.MaxInt32))
			next++
		}
		p.target(name, s)
		i = end
	}
	for ; next < len(a.Variants); next++ {
		p.addNoState(&a.Variants[next], literal)
	}
}

// add adds the candidate of a variant whose states have these indexes: more than one only if the name is given twice.
func (p *Plan) add(variants []Variant, places []int32, literal bool) *candidate {
	if literal {
		places = places[len(places)-1:] // the last one wins
	}
	v := &variants[places[0]]
	p.candidates = append(p.candidates, candidate{place: places[0], current: v.Current, wish: v.wish(), isPending: v.Pending})
	s := &p.candidates[len(p.candidates)-1]
	if literal {
		s.price = v.Cost
		return s
	}
	for _, i := range places[1:] {
		if variants[i] != *v {
			s.kind = contradicted
		}
		s.current = max(s.current, variants[i].Current)
	}
	if s.kind == known && !v.valid() {
		s.kind = invalid
	}
	if s.kind != known {
		s.capacity, s.wish = 1, s.current
		return s
	}
	s.capacity, s.bounds = v.capacity(), v.bounds()
	s.price = v.Cost / s.capacity
	s.wish = s.bounds.Clamp(s.wish)
	return s
}

// addNoState adds the candidate of a variant that reports and has no state. Its count is the number of replicas that report;
// in mode Literal it is 0.
func (p *Plan) addNoState(v *VariantAnalysis, literal bool) {
	rows := int32(min(v.Replicas, math.MaxInt32))
	s := candidate{place: -1, rows: rows, kind: noState, capacity: 1}
	if !literal {
		s.current, s.wish = rows, rows
	}
	p.candidates = append(p.candidates, s)
	p.target(v.Variant, &s)
}

// refuse decides Unknown for every variant.
func (p *Plan) refuse(a *Analysis, variants []Variant, code scaling.Code, subject string) {
	p.collect(a, variants, false)
	p.say(code, subject)
	for i := range p.candidates {
		p.open(i).Verdict = scaling.Unknown
	}
}

// target adds a target that is not decided yet.
func (p *Plan) target(name string, s *candidate) {
	n := len(p.Targets)
	p.Targets = slices.Grow(p.Targets, 1)[:n+1] // what is there is written over
	t := &p.Targets[n]
	t.Variant, t.Price, t.IsPriced, t.Reporting = name, 0, s.kind == known && s.price-s.price == 0, s.rows
	if t.IsPriced { // in mode Literal a price may be NaN
		t.Price = s.price
	}
}

// move makes the first remark the step that moves a target: it is why a count changes, the rank says only which one.
func (p *Plan) move(place int, by int32) { p.chosen, p.by = place, by }

// open starts the decision of the target at an index, beginning with the remarks.
func (p *Plan) open(place int) *scaling.Decision {
	d := &p.Targets[place].Decision
	n := p.candidates[place].current
	*d = scaling.Decision{Verdict: scaling.Hold, From: n, Replicas: n}
	for i := range p.said {
		r := &p.remarks[i]
		if i == 0 && p.by != 0 && place == p.chosen {
			n = scaling.Plus(n, p.by)
		}
		d.To(n, r.code, r.subject, r.numbers[:]...)
	}
	return d
}

// close adds the step that decided for the model as a whole, if that was not one of the remarks.
func (p *Plan) close(code scaling.Code, subject string, numbers ...float64) {
	p.last = remark{code: code, subject: subject}
	copy(p.last.numbers[:], numbers)
}

// Model returns the decision for the model as a whole: from the sum of the present counts to the sum of the targets, with
// their earliest Next.
func (p *Plan) Model() scaling.Decision {
	from, to := int64(0), int64(0)
	unknown, moving := true, 0
	for i := range p.Targets {
		d := &p.Targets[i].Decision
		from += int64(d.From)
		to += int64(d.Replicas)
		if d.Acts() {
			moving++
		}
		unknown = unknown && d.Verdict == scaling.Unknown
	}
	m := scaling.HoldAt(scaling.Saturate(float64(from)))
	n := scaling.Saturate(float64(to))
	for _, r := range p.remarks[:p.said] {
		if p.by != 0 {
			m.To(n, r.code, r.subject, r.numbers[:]...)
		} else {
			m.To(m.From, r.code, r.subject, r.numbers[:]...)
		}
	}
	if p.last.code != "" {
		m.To(n, p.last.code, p.last.subject, p.last.numbers[:]...)
	}
	if n != m.Replicas {
		m.To(n, Underway, "", float64(moving), 0)
	}
	if unknown {
		m.Verdict = scaling.Unknown
	}
	for i := range p.Targets {
		m.NextBy(p.Targets[i].Decision.Next)
	}
	return m
}
