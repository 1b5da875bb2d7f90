package proportional_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/inferscale/inferscale/internal/vectors"
)

// A vector row is met, or it is listed under the rule by which the answer here differs on purpose; the rule is computed
// from what the row says, and the test asserts what the answer here is instead. Any other row fails.

// An outcome says what became of a row: met if the rule is empty, else listed. An error fails.
type outcome struct{ rule string }

var met = outcome{}

func listed(rule string) (outcome, error) { return outcome{rule}, nil }

func differs(format string, args ...any) (outcome, error) {
	return outcome{}, fmt.Errorf(format, args...)
}

// sections are the ones that are for this package, by their place in a file.
func sections() map[string]func(json.RawMessage) (outcome, error) {
	return map[string]func(json.RawMessage) (outcome, error){
		"knative.decision_sequences":           knativeSequence,
		"knative.start_state":                  knativeStart,
		"knative.linear_and_weighted_windows":  knativeWindow,
		"knative.sliding_max":                  knativeSlidingMax,
		"knative.sliding_max_timed":            knativeSlidingMaxTimed,
		"knative.panic_window_from_percentage": knativePanicWindow,
		"hpa.defaults":                         hpaDefaults,
		"hpa.rate_limits":                      hpaRateLimits,
		"hpa.rate_limit_units":                 hpaRateLimitUnits,
		"hpa.stabilization":                    hpaStabilization,
		"hpa.legacy_stabilization":             hpaLegacyStabilization,
		"hpa.legacy_bounds":                    hpaLegacyBounds,
		"hpa.event_log":                        hpaEventLog,
		"hpa.replica_count":                    hpaReplicaCount,
		"hpa.float_edges.down":                 hpaFloatEdgeDown,
		"hpa.float_edges.up":                   hpaFloatEdgeUp,
		"recommendation":                       kthenaRecommendation,
		"correction":                           kthenaCorrection,
		"slidingWindow":                        kthenaSlidingWindow,
		"defaults.crd":                         kthenaDefaultsCRD,
		"defaults.mutatingWebhook":             kthenaDefaultsWebhook,
		"defaults.ranges":                      kthenaRanges,
	}
}

// fields are those without which a row of a section says nothing.
func fields() map[string]string {
	return map[string]string{
		"knative.decision_sequences":           "spec initial_ready steps",
		"knative.start_state":                  "want_in_panic want_max_panic_pods",
		"knative.linear_and_weighted_windows":  "kind window_s granularity_s ops",
		"knative.sliding_max":                  "size index values want_max_after_each",
		"knative.sliding_max_timed":            "window_s granularity_s rec want",
		"knative.panic_window_from_percentage": "stable_s pct want_panic_s",
		"hpa.rate_limits":                      "current desired min max up_rules down_rules want",
		"hpa.rate_limit_units":                 "direction current select policies want_limit",
		"hpa.stabilization":                    "current desired up_window_s down_window_s want",
		"hpa.legacy_stabilization":             "window_s desired want",
		"hpa.legacy_bounds":                    "current desired min max want",
		"hpa.event_log":                        "add_change want_sum_last_60s want_after",
		"hpa.replica_count":                    "current kind tolerance",
		"hpa.float_edges.down":                 "start percent exact",
		"hpa.float_edges.up":                   "start percent exact",
		"recommendation":                       "min max current tolerance targets want",
		"correction":                           "min max current recommended want",
		"slidingWindow":                        "kind freshMs ops",
	}
}

func TestVectors(t *testing.T) {
	rows := 0
	for _, file := range vectors.Files(t) {
		if file.IsLines() {
			continue // those of package saturation
		}
		t.Run(file.Name, func(t *testing.T) { rows += vectorSections(t, "", file.Data) })
	}
	vectors.Covered(t, rows)
}

// vectorSections walks through the objects of a file and runs the sections that are for this package. It returns how
// many rows were met or listed.
func vectorSections(t *testing.T, place string, data json.RawMessage) (rows int) {
	t.Helper()
	if run, ok := sections()[place]; ok {
		return vectorRows(t, place, run, rowsOf(data))
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) == nil && object != nil {
		if _, ok := object["cases"]; ok {
			t.Logf("%s: %d rows skipped: not for this package", place, len(rowsOf(data)))
			return 0
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			path := name
			if place != "" {
				path = place + "." + name
			}
			rows += vectorSections(t, path, object[name])
		}
		return rows
	}
	if list := rowsOf(data); len(list) > 1 || len(list) == 1 && data[0] == '[' {
		t.Logf("%s: %d rows skipped: not for this package", place, len(list))
	}
	return 0
}

// rowsOf returns the rows of a section: a list, the list named cases of an object, or the object itself.
func rowsOf(data json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil {
		return list
	}
	var object struct {
		Cases []json.RawMessage `json:"cases"`
	}
	if json.Unmarshal(data, &object) == nil && object.Cases != nil {
		return object.Cases
	}
	return []json.RawMessage{data}
}

func vectorRows(t *testing.T, place string, run func(json.RawMessage) (outcome, error), rows []json.RawMessage) int {
	t.Helper()
	countMet, countListed := 0, map[string]int{}
	for i, row := range rows {
		o := met
		err := vectors.Has(row, strings.Fields(fields()[place])...)
		if err == nil {
			o, err = run(row)
		}
		switch {
		case err != nil:
			t.Errorf("%s row %d: %v\n%s", place, i, err, row)
		case o == met:
			countMet++
		default:
			countListed[o.rule]++
		}
	}
	total := 0
	for _, n := range countListed {
		total += n
	}
	t.Logf("%s: %d rows: %d met, %d listed, 0 skipped", place, len(rows), countMet, total)
	for _, rule := range slices.Sorted(maps.Keys(countListed)) {
		t.Logf("  %d listed: %s", countListed[rule], rule)
	}
	return countMet + total
}

// A number is one of JSON, or a text such as "NaN" for what JSON has no number for.
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	*n = number(f)
	return err
}

// decode reads a row into v.
func decode(row json.RawMessage, v any) error { return json.Unmarshal(row, v) }
