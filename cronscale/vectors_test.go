package cronscale

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inferscale/inferscale/internal/vectors"
)

// A vector row is met, or it is listed under the rule by which the answer here differs on purpose; then the test
// asserts what the answer here is instead. Any other row fails.

// errDiffers is wrapped by the error of a row that is neither met nor covered by a rule.
var errDiffers = errors.New("differs")

// sections are the ones that are for this package, with the names of their columns where a row is an array.
func sections() map[string]section {
	return map[string]section{
		"keda_cron_parse":       {kedaParse, []string{"metadata", "accepted"}, 2},
		"keda_cron_active":      {kedaActive, []string{"start", "end", "tz", "at", "active", "nextstart", "nextend"}, 5},
		"seed_cron_match":       {seedMatch, []string{"spec", "tz", "now", "match"}, 4},
		"robfig_parse_standard": {robfigParse, []string{"spec", "ok"}, 2},
		"robfig_parse_errors":   {robfigParseError, []string{"spec", "error"}, 1},
		"robfig_next":           {robfigNext, []string{"from", "spec", "next"}, 3},
		"robfig_next_tz":        {robfigNext, []string{"from", "spec", "next"}, 3},
		"robfig_next_tests":     {robfigNextSeconds, []string{"from", "spec", "next"}, 3},
		"robfig_activation":     {robfigActivation, []string{"time", "spec", "fires"}, 3},
		"robfig_range":          {robfigField, []string{"expr", "min", "max", "bits", "error"}, 4},
		"robfig_field":          {robfigField, []string{"expr", "min", "max", "bits", "error"}, 4},
	}
}

type section struct {
	// run meets a row (the rule is empty), names the rule by which the answer differs, or returns an error.
	run     func(r vectorRow) (rule string, err error)
	columns []string
	needs   int // that many of the columns a row must have
}

// A vectorRow is a row by the names of its fields in lower case.
type vectorRow map[string]any

func (r vectorRow) text(name string) string {
	if s, ok := r[name].(string); ok {
		return s
	}
	return ""
}

func (r vectorRow) bool(name string) bool {
	b, ok := r[name].(bool)
	return ok && b
}

func (r vectorRow) number(name string) (float64, bool) {
	n, ok := r[name].(float64)
	return n, ok
}

// newRow reads a row: an object, an array whose columns the section names, or a single value.
func newRow(data json.RawMessage, columns []string) (vectorRow, error) {
	row := vectorRow{}
	var object map[string]any
	if json.Unmarshal(data, &object) == nil && object != nil {
		for k, v := range object {
			row[strings.ToLower(k)] = v
		}
		return row, nil
	}
	var array []any
	if json.Unmarshal(data, &array) != nil {
		var value any
		if err := json.Unmarshal(data, &value); err != nil {
			return nil, err
		}
		array = []any{value}
	}
	for i, v := range array {
		if i < len(columns) {
			row[columns[i]] = v
		}
	}
	return row, nil
}

func TestVectors(t *testing.T) {
	rows := 0
	for _, file := range vectors.Files(t) {
		if file.IsLines() {
			continue // those of package saturation
		}
		t.Run(file.Name, func(t *testing.T) { rows += vectorFile(t, file.Data) })
	}
	vectors.Covered(t, rows)
}

func vectorFile(t *testing.T, data []byte) (rows int) {
	t.Helper()
	var content map[string]json.RawMessage
	if json.Unmarshal(data, &content) != nil {
		t.Log("of another schema")
		return 0
	}
	known := sections()
	names := make([]string, 0, len(content))
	for name := range content {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var body struct {
			Cases []json.RawMessage `json:"cases"`
		}
		if json.Unmarshal(content[name], &body) != nil && json.Unmarshal(content[name], &body.Cases) != nil {
			if _, ok := known[name]; ok {
				t.Errorf("%s: must have cases", name)
			}
			continue // text about the file
		}
		sec, ok := known[name]
		if !ok {
			t.Logf("%s: %d rows skipped: not for this package", name, len(body.Cases))
			continue
		}
		n := 0
		listed := map[string]int{}
		for i, data := range body.Cases {
			row, err := newRow(data, sec.columns)
			rule := ""
			for _, column := range sec.columns[:sec.needs] {
				if row[column] == nil && err == nil {
					err = fmt.Errorf("%w: no %s", errDiffers, column)
				}
			}
			if err == nil {
				rule, err = sec.run(row)
			}
			switch {
			case err != nil:
				t.Errorf("%s row %d %s: %v", name, i, data, err)
			case rule == "":
				n++
			default:
				listed[rule]++
			}
		}
		rows += len(body.Cases)
		t.Logf("%s: %d rows, %d met", name, len(body.Cases), n)
		rules := make([]string, 0, len(listed))
		for rule := range listed {
			rules = append(rules, rule)
		}
		slices.Sort(rules)
		for _, rule := range rules {
			t.Logf("%s: %d listed: %s", name, listed[rule], rule)
		}
	}
	return rows
}
