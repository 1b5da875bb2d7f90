package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
	"github.com/inferscale/inferscale/sim/oracle"
	"github.com/inferscale/inferscale/sim/suite"
)

// recommendedName is the policy that is recommended to who does not know which to take.
const recommendedName = "capacity"

// A board is what came of the suite: every policy, and those that know more, in every row.
type board struct {
	Goal    float64   `json:"goal"`
	Seeds   int       `json:"seeds"`
	Quick   bool      `json:"quick"`
	Rows    []boarded `json:"rows"`
	Entries []*entry  `json:"policies"` // in the order of the table
}

// A boarded is a row of the suite, and what it needs.
type boarded struct {
	suite.Row

	Name     string          `json:"name"`
	Requests int             `json:"requests"` // of seed 1
	Cards    int             `json:"cards"`    // of a replica
	Capacity oracle.Capacity `json:"capacity"`
	// Oracle is the replica-hours of the best schedule known, for each seed.
	Oracle []float64 `json:"oracle"`
	// Present is the replica-hours of the policy that knows the present, for each seed; 0 where it does not attain the goal.
	Present []float64 `json:"present"`

	scenario sim.Scenario
}

// An entry is a policy and its cells, one for each row.
type entry struct {
	Name        string  `json:"name"`
	Sort        sort    `json:"sort"`
	Recommended bool    `json:"recommended,omitempty"`
	Score       score   `json:"score"`
	Cells       []*cell `json:"rows"`
}

// A cell is a policy in a row.
type cell struct {
	Row        string   `json:"row"`
	Attains    bool     `json:"attains"`
	Attainment estimate `json:"attainment"`
	// OverOracle and OverLimit are replica-hours over those of the best schedule known, and of the policy that knows the present
	// (nil where that does not attain the goal).
	OverOracle estimate  `json:"overOracle"`
	OverLimit  *estimate `json:"overLimit"`
	Actions    float64   `json:"actions"`
	Reversals  float64   `json:"reversals"`
	Starts     float64   `json:"starts"`
	GPUHours   estimate  `json:"gpuHours"`

	results []sim.Result // for each seed
}

// ofLimit is the sort of a policy that is told the truth.
const ofLimit sort = "limit"

// suiteTrims is how many more runs go into the schedule of a row.
const suiteTrims = 40

// runSuite runs the scoreboard and shows it.
func (o *options) runSuite(ctx context.Context, stdout, stderr io.Writer) (err error) {
	b := &board{Goal: suite.Goal, Seeds: o.seeds, Quick: o.quick}
	rows := suite.Full()
	if o.quick {
		rows = suite.Quick()
	}
	if o.rows != "" {
		if rows, err = parseRows(o.rows); err != nil {
			return err
		}
	}
	if err := o.writable(); err != nil {
		return err
	}
	before, err := o.before()
	if err != nil {
		return err
	}
	var known *journal
	if o.resume != "" {
		if known, err = openJournal(o.resume); err != nil {
			return misuse("-resume: %w", err)
		}
		defer func() { err = errors.Join(err, known.close()) }()
	}
	bar := newProgress(stderr, len(rows)*(o.seeds+1))
	defer bar.end()
	names, err := b.prepare(ctx, o, rows, bar, stderr)
	if err != nil {
		return err
	}
	n := len(rows) * o.seeds
	err = inParallel(ctx, o.parallel, n, func(ctx context.Context, i int) error {
		defer bar.step()
		return b.run(ctx, o, known, names, i/o.seeds, i%o.seeds)
	})
	if err != nil {
		return err
	}
	bar.end()
	b.sum()
	return o.showBoard(b, before, stdout, stderr)
}

// aheads are of how much of the future the limits are told; -1 is a cold start.
func aheads(quick bool) []time.Duration {
	if quick {
		return []time.Duration{0}
	}
	return []time.Duration{0, 30 * time.Second, time.Minute, -1}
}

// margins are those of the policies that are told the present, but not which margin a row needs; they hold needs for a cold start.
func margins() []float64 { return []float64{1, 1.25, 2, 3} }

func toldName(margin float64) string { return fmt.Sprintf("the present, margin %g", margin) }

func limitName(ahead time.Duration) string {
	switch {
	case ahead < 0:
		return "limit, a cold start ahead"
	case ahead == 0:
		return "limit, the present"
	default:
		return fmt.Sprintf("limit, %g s ahead", ahead.Seconds())
	}
}

// prepare makes the scenarios, and the entries with room for what comes. It returns the names of the policies.
func (b *board) prepare(ctx context.Context, o *options, rows []suite.Row, bar *progress, stderr io.Writer) ([]string, error) {
	b.Rows = make([]boarded, len(rows))
	err := inParallel(ctx, o.parallel, len(rows), func(ctx context.Context, i int) error {
		defer bar.step()
		s, c, err := rows[i].Scenario(ctx)
		if err != nil {
			return err
		}
		r := boarded{Row: rows[i], Name: rows[i].String(), Cards: suite.Cards(rows[i].Server), Capacity: c, scenario: s}
		r.Oracle, r.Present = make([]float64, o.seeds), make([]float64, o.seeds)
		next := s.Workload.Arrivals(seedOf(0))
		for _, more := next(); more; _, more = next() {
			r.Requests++
		}
		b.Rows[i] = r
		return nil
	})
	if err != nil {
		return nil, err
	}
	add := func(name string, of sort) {
		e := &entry{Name: name, Sort: of, Recommended: name == recommendedName}
		for i := range b.Rows {
			e.Cells = append(e.Cells, &cell{Row: b.Rows[i].Name, results: make([]sim.Result, o.seeds)})
		}
		b.Entries = append(b.Entries, e)
	}
	for _, ahead := range aheads(b.Quick) {
		add(limitName(ahead), ofLimit)
	}
	for _, margin := range margins() {
		add(toldName(margin), ofLimit)
	}
	contenders, err := o.contenders(b.world(0), stderr)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range contenders {
		add(c.name, c.sort)
		names = append(names, c.name)
	}
	return names, nil
}

// world returns the world of a row.
func (b *board) world(i int) *world {
	return &world{Scenario: b.Rows[i].scenario, bounds: suite.Bounds(), rateScale: 1}
}

// drawn draws the requests of a workload once, for all runs with a seed.
func drawn(w sim.Workload, seed uint64) (sim.Workload, error) {
	t := sim.Trace{Length: w.Duration()}
	for r, err := range sim.Requests(w, seed) {
		if err != nil {
			return nil, err
		}
		t.Requests = append(t.Requests, r)
	}
	return t, nil
}

// run runs everything in a row with a seed, but what is known.
func (b *board) run(ctx context.Context, o *options, known *journal, names []string, i, seed int) error {
	r := &b.Rows[i]
	s := r.scenario
	var err error
	if s.Workload, err = drawn(s.Workload, seedOf(seed)); err != nil {
		return err
	}
	made := func(name string, run func() (sim.Result, error)) (sim.Result, error) {
		return known.made(judged{name, r.Name, seedOf(seed)}, run)
	}
	search := oracle.Search{Alpha: b.Goal, Bounds: suite.Bounds(), Trims: min(suiteTrims, 6_000_000/max(1, r.Requests))}
	replayed, err := made(oracleName, func() (sim.Result, error) {
		replayed, err := oracle.Replay(ctx, &s, seedOf(seed), r.Capacity, search)
		if errors.Is(err, oracle.ErrUnattainable) {
			err = nil
		}
		return replayed.Result, err
	})
	if err != nil {
		return err
	}
	r.Oracle[seed] = replayed.ReplicaHours
	for k, ahead := range aheads(b.Quick) {
		if ahead < 0 {
			ahead = r.ColdStart
		}
		limit, err := made(limitName(aheads(b.Quick)[k]), func() (sim.Result, error) {
			l, err := oracle.Limit(ctx, &s, seedOf(seed), r.Capacity, search, ahead)
			return l.Result, err
		})
		if err != nil {
			return err
		}
		b.Entries[k].Cells[i].results[seed] = limit
		attains := limit.Attainment >= b.Goal
		if k == 0 && attains {
			r.Present[seed] = limit.ReplicaHours
		}
		if attains && limit.ReplicaHours < r.Oracle[seed] { // the best schedule that is known
			r.Oracle[seed] = limit.ReplicaHours
		}
	}
	for k, margin := range margins() {
		told, err := made(toldName(margin), func() (sim.Result, error) {
			l, err := oracle.Told(ctx, &s, seedOf(seed), r.Capacity, search, 0, margin, r.ColdStart)
			return l.Result, err
		})
		if err != nil {
			return err
		}
		b.Entries[len(aheads(b.Quick))+k].Cells[i].results[seed] = told
	}
	contenders, err := o.contenders(b.world(i), io.Discard)
	if err != nil {
		return err
	}
	for k, name := range names {
		c := contenders[slices.IndexFunc(contenders, func(c contender) bool { return c.name == name })]
		s.Metrics = c.metrics
		result, err := made(name, func() (sim.Result, error) {
			return sim.Run(ctx, &s, func() (scaling.Group, error) { return c.controller(seedOf(seed)) }, sim.Options{Policy: name, Seed: seedOf(seed)})
		})
		if err != nil {
			return err
		}
		result.Timeline, result.TTFTHistogram = nil, nil
		b.Entries[len(b.Entries)-len(names)+k].Cells[i].results[seed] = result
	}
	return nil
}
