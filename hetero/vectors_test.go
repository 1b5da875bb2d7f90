package hetero_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/internal/vectors"
	"github.com/inferscale/inferscale/scaling"
)

// vectorType is a type as the vectors write it: [name, cost, min, max].
type vectorType struct {
	name     string
	cost     float64
	min, max int32
}

func (v *vectorType) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&v.name, &v.cost, &v.min, &v.max})
}

// vectorBatch is a batch as the vectors write it: [type, size, cost].
type vectorBatch struct {
	name string
	size int32
	cost float64
}

func (v *vectorBatch) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&v.name, &v.size, &v.cost})
}

// vectorRun is a part of a run-length encoded sequence: [count, type].
type vectorRun struct {
	count int64
	name  string
}

func (v *vectorRun) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&v.count, &v.name})
}

type vectorOptimizer struct {
	UnitTestPlacements []struct {
		RatePercent float64          `json:"ratePercent"`
		Types       []vectorType     `json:"types"`
		K           int64            `json:"K"`
		Want        map[string]int32 `json:"want"`
	} `json:"unitTestPlacements"`
	UnitTestShapes []struct {
		RatePercent        float64      `json:"ratePercent"`
		Types              []vectorType `json:"types"`
		MinTotal           *int64       `json:"minTotal"`
		MaxTotal           *int64       `json:"maxTotal"`
		Batches            *int         `json:"batches"`
		BatchesGreaterThan *int         `json:"batchesGreaterThan"`
	} `json:"unitTestShapes"`
	Cases []struct {
		Name        string         `json:"name"`
		RatePercent float64        `json:"ratePercent"`
		Types       []vectorType   `json:"types"`
		MinTotal    *int64         `json:"minTotal"`
		MaxTotal    *int64         `json:"maxTotal"`
		Batches     *[]vectorBatch `json:"batches"`
		ByK         [][]int64      `json:"byK"`
		SeqRLE      *[]vectorRun   `json:"seqRLE"`
	} `json:"cases"`
}

// vectorFleet is the fleet of a row, with what had to be changed for it to be accepted.
type vectorFleet struct {
	*hetero.Fleet
	types   []vectorType
	changes []string
}

// fleetOf returns the fleet of a row. Kthena breaks ties by the order of declaration and we do by name, so the types
// are renamed to have their names in that order. What Kthena takes and we refuse is replaced by the valid fleet that
// places in the same way, after making sure that it is refused by a FieldError for that very field:
//
//   - A cost of 0 sorts before every other, all batches of the first such type before those of the next. So do costs
//     that are smaller than any other by more than a million batches can make up, increasing by as much again.
//   - A min above max gives the type no capacity. So does a max equal to it; only the greatest total differs.
func fleetOf(t *testing.T, ratePercent float64, types []vectorType) vectorFleet {
	t.Helper()
	v := vectorFleet{types: types}
	config := hetero.Config{ExpansionRate: ratePercent / 100}
	free := 1e-290
	var refused []string
	for i, k := range types {
		kind := hetero.Type{Name: fmt.Sprintf("%06d %s", i, k.name), Cost: k.cost, Min: k.min, Max: k.max}
		config.Types = append(config.Types, kind)
	}
	valid := hetero.Config{ExpansionRate: config.ExpansionRate, Types: slices.Clone(config.Types)}
	for i, k := range types {
		if k.cost == 0 {
			refused = append(refused, fmt.Sprintf("types[%d].cost", i))
			v.changes = append(v.changes, fmt.Sprintf("cost 0 of %s is refused (costs are above 0); placed with an infinitesimal one", k.name))
			valid.Types[i].Cost = free
			free *= 1e7
		}
		if k.min > k.max {
			refused = append(refused, fmt.Sprintf("types[%d].max", i))
			v.changes = append(v.changes, fmt.Sprintf("min %d above max %d of %s is refused; placed with max=min", k.min, k.max, k.name))
			valid.Types[i].Max = k.min
		}
	}
	if len(refused) > 0 {
		_, err := hetero.New(config)
		require.ElementsMatch(t, refused, fieldsOf(err), "%v", err)
	}
	var err error
	v.Fleet, err = hetero.New(valid)
	require.NoError(t, err)
	return v
}

// fieldsOf returns the fields that an error names.
func fieldsOf(err error) (fields []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			fields = append(fields, fieldsOf(e)...)
		}
		return fields
	}
	if f, ok := err.(*scaling.FieldError); ok { //nolint:errorlint // the tree is walked by hand
		return []string{f.Field}
	}
	return nil
}

// totals returns the totals of a row as Kthena has them: the plain sums.
func (v *vectorFleet) totals() (least, most int64) {
	for _, k := range v.types {
		least += int64(k.min)
		most += int64(k.max)
	}
	return least, most
}

// place returns the counts for K, which Kthena clamps to its own totals.
func (v *vectorFleet) place(k int64) []int32 {
	least, most := v.totals()
	return v.Allocate(nil, max(least, min(k, most)))
}

// batches returns the sequence as Kthena lists it: one batch a line, but at a rate of exactly 100 percent all of a
// type as one block with the cost of one replica. Batches of free types cost 0.
func (v *vectorFleet) batches(ratePercent float64) (all []vectorBatch) {
	for b := range v.Batches() {
		k := v.types[b.Type]
		one := vectorBatch{name: k.name, size: b.Size, cost: b.Cost}
		if k.cost == 0 {
			one.cost = 0
		}
		if ratePercent == 100 {
			one.size = b.Size * b.Count
			all = append(all, one)
			continue
		}
		for range b.Count {
			all = append(all, one)
		}
	}
	return all
}

// sortFree sorts the batches of each free type by size: Kthena's sort is unstable and they all cost 0, so their order
// within the type means nothing, and no placement depends on it.
func sortFree(batches []vectorBatch) []vectorBatch {
	batches = slices.Clone(batches)
	slices.SortStableFunc(batches, func(a, b vectorBatch) int {
		if a.cost != 0 || b.cost != 0 || a.name != b.name {
			return 0
		}
		return int(a.size - b.size)
	})
	return batches
}

func (v *vectorFleet) sequence() (runs []vectorRun) {
	for i := range v.Sequence() {
		name := v.types[i].name
		if n := len(runs); n > 0 && runs[n-1].name == name {
			runs[n-1].count++
			continue
		}
		runs = append(runs, vectorRun{1, name})
	}
	return runs
}

// TestVectorsOptimizer compares every recorded placement of Kthena's optimizer: batches, counts by total, sequence.
func TestVectorsOptimizer(t *testing.T) {
	rows := 0
	for _, file := range vectors.Files(t) {
		var o vectorOptimizer
		if !file.Section(t, "optimizer", &o) {
			continue
		}
		var c vectors.Tally
		row := func(name string, v *vectorFleet, failed bool) {
			switch {
			case failed:
				t.Errorf("%s: %s: not met", file.Name, name)
			case len(v.changes) > 0:
				c.List("%s: %s; its placements are met so", name, strings.Join(v.changes, "; "))
			default:
				c.Met++
			}
		}
		for i, r := range o.UnitTestPlacements {
			v := fleetOf(t, r.RatePercent, r.Types)
			got := map[string]int32{}
			for i, n := range v.place(r.K) {
				got[r.Types[i].name] = n
			}
			row(fmt.Sprintf("unitTestPlacements[%d]", i), &v, !assert.Equal(t, r.Want, got))
		}
		for i, r := range o.UnitTestShapes {
			v := fleetOf(t, r.RatePercent, r.Types)
			least, most := v.totals()
			n := len(v.batches(r.RatePercent))
			ok := r.MinTotal == nil || assert.Equal(t, *r.MinTotal, least)
			ok = (r.MaxTotal == nil || assert.Equal(t, *r.MaxTotal, most)) && ok
			ok = (r.Batches == nil || assert.Equal(t, *r.Batches, n)) && ok
			ok = (r.BatchesGreaterThan == nil || assert.Greater(t, n, *r.BatchesGreaterThan)) && ok
			row(fmt.Sprintf("unitTestShapes[%d]", i), &v, !ok)
		}
		for _, r := range o.Cases {
			require.NotNil(t, r.Types, "%s: %s: no types", file.Name, r.Name)
			require.True(t, r.MinTotal != nil || r.MaxTotal != nil || r.Batches != nil || r.SeqRLE != nil || len(r.ByK) > 0, "%s: %s: no answer", file.Name, r.Name)
			if len(r.Types) == 0 {
				c.List("%s: a fleet without types is refused", r.Name)
				continue
			}
			v := fleetOf(t, r.RatePercent, r.Types)
			least, most := v.totals()
			ok := r.MinTotal == nil || assert.Equal(t, *r.MinTotal, least, r.Name)
			ok = (r.MaxTotal == nil || assert.Equal(t, *r.MaxTotal, most, r.Name)) && ok
			if r.Batches != nil {
				ok = sameBatches(t, sortFree(*r.Batches), sortFree(v.batches(r.RatePercent)), r.Name) && ok
			}
			if r.SeqRLE != nil {
				ok = assert.Equal(t, append([]vectorRun(nil), *r.SeqRLE...), v.sequence(), r.Name) && ok
			}
			for _, line := range r.ByK {
				require.Len(t, line, 1+len(r.Types), "%s: %s: byK", file.Name, r.Name)
				got := []int64{line[0]}
				for _, n := range v.place(line[0]) {
					got = append(got, int64(n))
				}
				ok = assert.Equal(t, line, got, "%s: K=%d", r.Name, line[0]) && ok
			}
			row(r.Name, &v, !ok)
		}
		rows += c.Rows()
		c.Report(t, file.Name, "optimizer")
	}
	vectors.Covered(t, rows)
}

func sameBatches(t *testing.T, want, got []vectorBatch, name string) bool {
	t.Helper()
	ok := assert.Len(t, got, len(want), name)
	for i := range min(len(want), len(got)) {
		ok = assert.Equal(t, want[i].name, got[i].name, "%s: batch %d", name, i) && ok
		ok = assert.Equal(t, want[i].size, got[i].size, "%s: batch %d", name, i) && ok
		ok = assert.InDelta(t, want[i].cost, got[i].cost, 1e-9*max(1, want[i].cost), "%s: batch %d", name, i) && ok
	}
	return ok
}

// TestVectorsDefaults compares Kthena's recorded defaults and ranges where hetero has the same ones.
func TestVectorsDefaults(t *testing.T) {
	rows := 0
	for _, file := range vectors.Files(t) {
		var s struct {
			CRD struct {
				Rate *float64 `json:"costExpansionRatePercent"`
			} `json:"crd"`
			Ranges map[string]any `json:"ranges"`
		}
		if !file.Section(t, "defaults", &s) {
			continue
		}
		var c vectors.Tally
		if s.CRD.Rate != nil {
			require.InDelta(t, *s.CRD.Rate/100, hetero.Kthena().ExpansionRate, 0)
			c.Met++
		}
		for name, value := range s.Ranges {
			switch name {
			case "costExpansionRatePercent":
				require.Equal(t, ">=0", value)
				require.NoError(t, hetero.Config{Types: []hetero.Type{{Name: "a", Cost: 1, Max: 1}}}.Validate())
				c.Met++
			case "cost":
				c.List("cost %v: ours is above 0: a free type has no place in an order by cost", value)
			case "maxReplicas":
				require.Equal(t, []any{1.0, float64(hetero.MaxReplicas)}, value)
				c.Met++
			case "minReplicas":
				require.Equal(t, []any{0.0, float64(hetero.MaxReplicas)}, value)
				c.Met++
			default:
				c.Skipped++ // of other packages
			}
		}
		rows += c.Rows()
		c.Report(t, file.Name, "defaults")
	}
	vectors.Covered(t, rows)
}
