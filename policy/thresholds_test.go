package policy_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// The seed's ConfigMap.
var seedData = map[string]string{
	"default": "kvCacheThreshold: 0.80\nqueueLengthThreshold: 5\nkvSpareTrigger: 0.1\nqueueSpareTrigger: 3\n",
	"meta/llama-70b#production": "model_id: meta/llama-70b\nnamespace: production\n" +
		"kvCacheThreshold: 0.85\nqueueLengthThreshold: 5\nkvSpareTrigger: 0.15\nqueueSpareTrigger: 3\n",
}

func TestResolve(t *testing.T) {
	override := saturation.Thresholds{KVCache: 0.85, QueueLength: 5, KVSpare: 0.15, QueueSpare: 3}
	for _, mode := range []saturation.Mode{saturation.Default, saturation.Literal} {
		table, err := policy.ReadThresholds(seedData, mode)
		require.NoError(t, err)
		for _, c := range []struct {
			model, namespace, key string
			want                  saturation.Thresholds
		}{
			{"meta/llama-70b", "production", "meta/llama-70b#production", override},
			{"meta/llama-70b", "staging", "default", saturation.Recommended()},
			{"other", "production", "default", saturation.Recommended()},
		} {
			got, key, err := table.Resolve(c.model, c.namespace)
			require.NoError(t, err)
			require.Equal(t, c.key, key)
			require.Equal(t, c.want, got)
		}
	}
}

// TestResolveWithoutEntries: built-in defaults in mode Default, the seed's zeros in mode Literal.
func TestResolveWithoutEntries(t *testing.T) {
	var none policy.ThresholdTable
	got, key, err := none.Resolve("m", "n")
	require.NoError(t, err)
	require.Empty(t, key)
	require.Equal(t, saturation.Recommended(), got)
	table, err := policy.ReadThresholds(map[string]string{"default": "kvCacheThreshold: 0.5\n"}, saturation.Literal)
	require.NoError(t, err)
	got, key, err = table.Resolve("m", "n")
	require.NoError(t, err)
	require.Equal(t, "default", key)
	require.Equal(t, saturation.Thresholds{KVCache: 0.5}, got, "what is left out is 0, not inherited")
}

// TestBrokenEntries: each is reported by its key and fields, the others stay usable, and whoever asks for a broken one
// gets the next with the error.
func TestBrokenEntries(t *testing.T) {
	good := seedData["default"]
	data := map[string]string{
		"default":      good,
		"good#n":       strings.Replace(good, "0.80", "0.90", 1),
		"unknown#n":    good + "kvCacheTreshold: 0.9\nscaleUpThreshold: 0.85\n",
		"twice#n":      good + "queueSpareTrigger: 4\n",
		"partial#n":    "kvCacheThreshold: 0.9\nqueueLengthThreshold: 5\n",
		"text#n":       strings.Replace(good, "5", `"5"`, 1),
		"list#n":       "- 1\n",
		"nested#n":     strings.Replace(good, "5", "{a: 1}", 1),
		"nan#n":        strings.Replace(good, "0.1", ".nan", 1),
		"zeros#n":      "kvCacheThreshold: 0\nqueueLengthThreshold: 0\nkvSpareTrigger: 0\nqueueSpareTrigger: 0\n",
		"inverted#n":   strings.Replace(good, "0.1", "0.9", 1),
		"syntax#n":     "kvCacheThreshold: [",
		"documents#n":  good + "---\n" + good,
		"empty#n":      "",
		"nokey":        good,
		"#":            good,
		"complexkey#n": "{[a]: 1}",
		"alias#n":      strings.Replace(good, "0.80", "&x 0.80", 1) + "model_id: *x\n",
	}
	table, err := policy.ReadThresholds(data, saturation.Default)
	require.Error(t, err)
	var entry *policy.PositionError
	require.ErrorAs(t, err, &entry)
	var field *scaling.FieldError
	require.ErrorAs(t, err, &field)
	scalingtest.Golden(t, "entries.txt", err.Error()+"\n")

	for _, key := range slices.Sorted(maps.Keys(data)) {
		model, namespace, found := strings.Cut(key, "#")
		if !found {
			continue
		}
		got, from, err := table.Resolve(model, namespace)
		if key == "good#n" {
			require.NoError(t, err)
			require.Equal(t, key, from)
			require.InDelta(t, 0.9, got.KVCache, 0)
			continue
		}
		require.ErrorAs(t, err, &entry, key)
		require.Equal(t, fmt.Sprintf("entry %q", key), entry.File)
		require.Equal(t, "default", from, "the next entry decides")
		require.Equal(t, saturation.Recommended(), got)
	}

	// A broken default: built-in defaults, and the error.
	table, err = policy.ReadThresholds(map[string]string{"default": "x: 1"}, saturation.Default)
	require.Error(t, err)
	got, from, err := table.Resolve("m", "n")
	require.Error(t, err)
	require.Empty(t, from)
	require.Equal(t, saturation.Recommended(), got)
}

// FuzzParseTable: any text is an entry or an error that names it, and an entry is one that New takes.
func FuzzParseTable(f *testing.F) {
	for _, text := range seedData {
		f.Add("default", text, false)
		f.Add("m#n", text, true)
	}
	for _, text := range []string{"", "a: &a [*a]", "<<: {kvCacheThreshold: 1}", "kvCacheThreshold: 1e999", "? [x]\n: 1", "kvCacheThreshold: 0x1", "--- 1\n--- 2"} {
		f.Add("default", text, true)
	}
	f.Fuzz(func(t *testing.T, key, text string, literal bool) {
		mode := saturation.Default
		if literal {
			mode = saturation.Literal
		}
		table, err := policy.ReadThresholds(map[string]string{key: text, "other#n": seedData["default"]}, mode)
		if key != "other#n" {
			got, from, otherErr := table.Resolve("other", "n")
			if otherErr != nil || from != "other#n" || got != saturation.Recommended() {
				t.Fatalf("another entry is not usable: %v %q %v", got, from, otherErr)
			}
		}
		model, namespace, _ := strings.Cut(key, "#")
		got, from, resolveErr := table.Resolve(model, namespace)
		if err == nil != (resolveErr == nil) && (key == policy.DefaultThresholds || strings.Contains(key, "#")) {
			t.Fatalf("parsed with %v, resolved with %v", err, resolveErr)
		}
		named := fmt.Sprintf("entry %q", key)
		if len(key) > 253 { // longer than any key of a ConfigMap
			named = fmt.Sprintf("entry %q", strings.ToValidUTF8(key[:253], "")+"...")
		}
		if err != nil && !strings.Contains(err.Error(), named) {
			t.Fatalf("the error does not name the entry: %v", err)
		}
		if _, err := saturation.New(saturation.Config{Thresholds: got, Mode: mode}); err != nil {
			t.Fatalf("resolved from %q to what New refuses: %v", from, err)
		}
	})
}

// TestThresholdsOfAModelUnderAnyKey: no ConfigMap can have a key with a # or a /, so that an entry is its model's by its fields. (In seed
// 002 only the key counts.)
func TestThresholdsOfAModelUnderAnyKey(t *testing.T) {
	entry := func(kv, of string) string {
		return of + "\nkvCacheThreshold: " + kv + "\nqueueLengthThreshold: 5\nkvSpareTrigger: 0.1\nqueueSpareTrigger: 3\n"
	}
	const llama = "model_id: meta/llama-70b\nnamespace: production"
	table, err := policy.ReadThresholds(map[string]string{
		"default": entry("0.8", llama), "llama-70b": entry("0.7", llama), "other": entry("0.6", "model_id: other\nnamespace: production"),
	}, saturation.Default)
	require.NoError(t, err)
	for model, want := range map[string]struct {
		kv  float64
		key string
	}{"meta/llama-70b": {0.7, "llama-70b"}, "other": {0.6, "other"}, "third": {0.8, "default"}} {
		thresholds, key, err := table.Resolve(model, "production")
		require.NoError(t, err)
		require.InDelta(t, want.kv, thresholds.KVCache, 0)
		require.Equal(t, want.key, key)
	}
	table, err = policy.ReadThresholds(map[string]string{"a": entry("0.7", llama), "b": entry("0.6", llama), "c": entry("0.5", "model_id: x")}, saturation.Default)
	require.EqualError(t, err, "entry \"b\": key: \"b\": must not be a second entry for meta/llama-70b#production: there is \"a\"\n"+
		"entry \"c\": key: \"c\": must be \"default\" or modelID#namespace, or the entry must have model_id and namespace")
	thresholds, key, err := table.Resolve("meta/llama-70b", "production")
	require.NoError(t, err)
	require.InDelta(t, 0.7, thresholds.KVCache, 0)
	require.Equal(t, "a", key)
}

// TestRegressionManyBrokenEntriesOfOneModel: each error was joined with all before it. 12,000 entries took 38 s and 15 GB in each round.
func TestRegressionManyBrokenEntriesOfOneModel(t *testing.T) {
	data := map[string]string{}
	for i := range 3000 {
		data[fmt.Sprintf("k%05d", i)] = "{model_id: m, namespace: n}"
	}
	table, _ := policy.ReadThresholds(data, saturation.Default)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := table.Resolve("m", "n")
	text := err.Error()
	runtime.ReadMemStats(&after)
	require.Contains(t, text, `entry "k02999":1: kvCacheThreshold: must be given`)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), "900 MB before, 40 MB now")
}

// TestRegressionAWrongThresholdBesideAMissingOne: a wrong threshold was told only when all four were given.
func TestRegressionAWrongThresholdBesideAMissingOne(t *testing.T) {
	for entry, want := range map[string]string{
		"kvCacheThreshold: 7":                                       `"default":1: kvCacheThreshold: 7: must be from 1e-9 to 1`,
		"{kvCacheThreshold: 0.8, kvSpareTrigger: 0.9}":              `"default":1: kvSpareTrigger: 0.9: must be below kvCacheThreshold 0.8`,
		"{queueLengthThreshold: 5, queueSpareTrigger: 5, extra: 1}": `"default":1: queueSpareTrigger: 5: must be below queueLengthThreshold 5`,
	} {
		_, err := policy.ReadThresholds(map[string]string{"default": entry}, saturation.Default)
		require.ErrorContains(t, err, want)
	}
	for entry, want := range map[string]string{
		"kvSpareTrigger: 0.9":     "kvCacheThreshold queueLengthThreshold queueSpareTrigger",
		"queueSpareTrigger: 7":    "kvCacheThreshold queueLengthThreshold kvSpareTrigger",
		"[1]":                     "",
		"kvCacheThreshold: [":     "",
		"{kvCacheThreshold: x}":   "kvCacheThreshold queueLengthThreshold kvSpareTrigger queueSpareTrigger",
		"kvCacheThreshold: 0.8\n": "queueLengthThreshold kvSpareTrigger queueSpareTrigger",
	} {
		_, err := policy.ReadThresholds(map[string]string{"default": entry}, saturation.Default)
		require.Error(t, err, entry)
		require.Len(t, strings.Split(err.Error(), "\n"), max(1, len(strings.Fields(want))), "what is missing is not wrong too: %v", err)
	}
}
