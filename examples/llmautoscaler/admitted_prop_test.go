package main

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
	"github.com/inferscale/inferscale/scrape"
)

// TestPropAdmittedBuilds draws objects, valid and not, near the limits of every rule: whatever schema and rules admit
// can be built, and its metrics can be scraped, but for what only the controller and the webhook refuse, so that objects
// that are stored stay valid for the schema. Sources of two scalers are the same for the rule if they are for build.
func TestPropAdmittedBuilds(t *testing.T) {
	a := newAdmission(t)
	admitted, drawn := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		data, err := json.Marshal(map[string]any{
			"apiVersion": "autoscaling.inferscale.io/v1alpha1", "kind": "LLMAutoScaler", "metadata": map[string]any{"name": "a"}, "spec": draw{rt, rapid.Bool().Draw(rt, "with faults")}.spec(),
		})
		require.NoError(rt, err)
		drawn++
		las, err := a.admit(t, string(data))
		if err != nil {
			if strings.HasSuffix(err.Error(), differ) && strings.Count(err.Error(), "Invalid value") == 1 {
				_, other := build.Spec(las.Spec.Document())
				require.ErrorContains(rt, other, "must be read as", "%s", data)
			}
			return
		}
		admitted++
		plan, err := build.Spec(las.Spec.Document())
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				require.Regexp(rt, "must not be above spec.maxReplicas|must be at most 1: the metric is a fraction|must make no step of more than 90 days", line, "%s", data)
			}
			return
		}
		las.Namespace = "models"
		require.NoError(rt, controller.Target(las).Validate("target"), "%s", data)
		if plan.Scrapes() {
			_, err = scrape.New(plan.Scrape)
			require.NoError(rt, err, "%s", data)
		}
	})
	t.Logf("%d of %d were admitted", admitted, drawn)
	require.Greater(t, admitted*50, drawn, "%d of %d were admitted: hardly anything was tested", admitted, drawn)
}

// differ is what the rule on the sources of two scalers says.
const differ = "sources of realtime and proportional with one name, or signal, must be the same"

// A draw draws parts of a spec; what a rule refuses by itself it draws with faults, and seldom without.
type draw struct {
	*rapid.T
	faults bool
}

func (d draw) of(label string, values ...any) any { return rapid.SampledFrom(values).Draw(d.T, label) }

// seldom reports whether to draw what is likely to be refused.
func (d draw) seldom() bool { return d.faults && rapid.IntRange(0, 150).Draw(d.T, "odd") == 0 }

// maybe sets a field, or leaves it out.
func (d draw) maybe(m map[string]any, key string, good []any, bad ...any) {
	switch {
	case len(bad) > 0 && d.seldom():
		m[key] = d.of(key, bad...)
	case rapid.Bool().Draw(d.T, "has "+key):
		m[key] = d.of(key, good...)
	}
}

func (d draw) spec() map[string]any {
	scaler := map[string]any{}
	for rapid.IntRange(0, 30).Draw(d.T, "once more") == 0 || len(scaler) == 0 {
		if rapid.Bool().Draw(d.T, "realtime") {
			scaler["realtime"] = d.realtime()
		}
		if rapid.Bool().Draw(d.T, "proportional") {
			scaler["proportional"] = d.proportional()
		}
		if rapid.Bool().Draw(d.T, "capacity") {
			scaler["capacity"] = d.capacity()
		}
		if rapid.Bool().Draw(d.T, "cron") {
			scaler["cron"] = d.cron()
		}
	}
	if scaler["realtime"] != nil && scaler["proportional"] != nil && scaler["cron"] == nil && rapid.Bool().Draw(d.T, "shared") {
		d.share(scaler["realtime"], scaler["proportional"])
	}
	target := map[string]any{"apiVersion": d.of("apiVersion", "apps/v1", "v1", "kaito.sh/v1beta1"), "kind": "Deployment", "name": "chat"}
	if d.of("target", "good", "good", "good", "good", "good", "good", "good", "other") == "other" {
		delete(target, "apiVersion")
		d.maybe(target, "apiVersion", []any{"", "/", "a/b/c", "apps/", "/v1", "Apps/v1"})
	}
	s := map[string]any{
		"scaleTargetRef": target,
		"maxReplicas":    d.of("max", 1, 4, 8, 2147483647), "scaler": scaler,
	}
	d.maybe(s, "minReplicas", []any{0, 1}, -1, 5)
	d.maybe(s, "intervalSeconds", []any{1, 15, 600, 3600}, 0, 3601)
	d.maybe(s, "grouping", []any{"Pod", "LeaderWorkerSet", "KaitoWorkspace"}, "Other")
	d.maybe(s, "dryRun", []any{true, false})
	scrape := map[string]any{}
	d.maybe(scrape, "portName", []any{"web"}, "80", "Web")
	d.maybe(scrape, "tls", []any{map[string]any{"serverName": "a.b"}, map[string]any{"insecureSkipVerify": true}}, map[string]any{"insecureSkipVerify": true, "caSecretRef": map[string]any{"name": "a"}})
	if len(scrape) > 0 {
		s["scrape"] = scrape
	}
	return s
}

func (d draw) capacity() map[string]any {
	slo := map[string]any{"ttftSeconds": d.of("ttft", 2, "0.000000001", 3600), "tpotSeconds": d.of("tpot", "0.1", 3600)}
	d.maybe(slo, "goal", []any{"0.5", "0.999999999"}, 1, "0.4", 0)
	d.maybe(slo, "ttftSeconds", []any{1}, 0, 3601, "3600.000000001")
	server := map[string]any{
		"baseMicroseconds": d.of("base", 1, "14000.5", 3600000000), "prefillTokenMicroseconds": d.of("prefill", 0, "64.1", 3600000000),
		"maxSeqs": d.of("seqs", 1, 256, 1048576), "tokenBudget": d.of("budget", 1, 2147483647), "kvTokens": d.of("kv", 1, 1000000000),
	}
	if rapid.Bool().Draw(d.T, "named") {
		server = map[string]any{"name": d.of("server", "qwen3-32b-2xh100", "llama2-70b-8xa100", "llama2-70b-4xh100", "llama2-70b-8xh100")}
	}
	d.maybe(server, "baseMicroseconds", []any{1}, 0, "0.999999999", 3600000001)
	d.maybe(server, "sequenceMicroseconds", []any{0, 40, 3600000000}, 3600000001)
	d.maybe(server, "kvTokenMicroseconds", []any{0, "0.039", 1000}, 1001)
	if d.seldom() {
		delete(server, d.of("without", "baseMicroseconds", "kvTokens", "name").(string))
	}
	s := map[string]any{"slo": slo, "server": server}
	d.maybe(s, "coldStartSeconds", []any{1, 86400}, 0, 86401)
	source := map[string]any{}
	d.maybe(source, "engine", []any{"VLLM", "SGLang"}, "TGI")
	d.maybe(source, "protocol", []any{"http", "https"}, "ftp")
	d.maybe(source, "port", []any{8000, "8000"}, 0)
	d.maybe(source, "path", []any{"/metrics"}, "metrics")
	d.maybe(s, "source", []any{source})
	d.forecast(s)
	return s
}

func (d draw) forecast(scaler map[string]any) {
	zone := func(name string) map[string]any { return map[string]any{"timeZone": name} }
	mode := func(name string) map[string]any { return map[string]any{"mode": name} }
	d.maybe(scaler, "forecast", []any{map[string]any{}, zone("UTC"), zone("Europe/Berlin"), mode("Auto"), mode("Disabled")}, zone("Local"), zone(""), zone("a b"), mode("None"), mode(""))
}

// share has two scalers read the same in their first metrics, which may be written in two ways.
func (d draw) share(from, to any) {
	first := func(scaler any) map[string]any {
		all, _ := scaler.(map[string]any)["metrics"].([]any)
		if len(all) == 0 {
			return map[string]any{}
		}
		return all[0].(map[string]any)
	}
	s, ok := first(from)["source"].(map[string]any)
	if !ok {
		return
	}
	other := maps.Clone(s)
	switch port := other["port"].(type) {
	case int:
		other["port"] = d.of("same port", port, strconv.Itoa(port), port%65535+1)
	case string:
		if n, err := strconv.Atoi(port); err == nil {
			other["port"] = d.of("same port", port, n)
		}
	}
	if q, ok := other["quantile"].(string); ok {
		other["quantile"] = d.of("same quantile", q, q+"0")
	}
	if name, ok := other["name"]; (!ok || name == "vllm:num_requests_waiting") && other["signal"] == nil {
		delete(other, "name")
		d.maybe(other, "name", []any{"vllm:num_requests_waiting"})
	}
	first(to)["source"] = other
}

func (d draw) source() map[string]any {
	s := map[string]any{}
	engines := []any{"VLLM", "SGLang", "TGI", "TRTLLM", "Triton", "Dynamo", "LlamaCPP"}
	signals := []any{"Waiting", "Running", "InFlight", "KVCacheUsage", "TTFT", "TPOT", "PrefixCacheHitRate", "Preemptions"}
	switch d.of("what", 0, 1, 2, 3) {
	case 0:
		s["engine"], s["signal"] = d.of("engine", engines...), d.of("signal", signals...)
		if s["signal"] == "TTFT" || d.seldom() {
			d.maybe(s, "quantile", []any{"0.99", "0.5", "0.000000001"}, 0, 1, "1.5")
		}
		if d.seldom() {
			s["name"] = "both"
		}
	case 1:
		s["name"] = d.of("name", "queue", "a:b_c", "vllm:num_requests_waiting", "vllm:time_to_first_token_seconds", "vllm:prompt_tokens_total")
		d.maybe(s, "aggregation", []any{"Only", "Sum", "Average", "Max", "Min"}, "Mean")
	case 2:
		s["name"] = d.of("other name", "x", "y", "z")
	}
	d.maybe(s, "protocol", []any{"http", "https"}, "ftp")
	d.maybe(s, "port", []any{1, 65535, "5000", "65535"}, 0, 65536, "0", "65536", "web", 1.5)
	d.maybe(s, "path", []any{"/", "/metrics", "/a/b", "/m?x[]=vllm:a&y=%20", "/%41", "/?a"}, "//a", "a", "/a#b", "/a b", "/%4", `/\a`)
	d.maybe(s, "labels", []any{map[string]any{"a": "b"}, map[string]any{"a": ""}}, map[string]any{"": "b"})
	return s
}

func (d draw) metrics(one func(i int) map[string]any) []any {
	n := rapid.IntRange(1, 2).Draw(d.T, "metrics")
	if d.seldom() {
		n = d.of("many", 0, 8, 9).(int)
	}
	all := make([]any, n)
	for i := range all {
		all[i] = one(i)
		if n > 3 {
			all[i].(map[string]any)["source"] = map[string]any{"name": string(rune('a' + i))}
		}
	}
	return all
}

func (d draw) realtime() map[string]any {
	r := map[string]any{"metrics": d.metrics(func(int) map[string]any {
		low, high := d.of("low", 0, 1, "0.5"), d.of("high", 2, "1.5", 999999999999, "999999999999.999999999")
		if d.seldom() {
			high = d.of("bad high", 1, 0, -1, "1m", "1e3", 0.5, 1000000000000, "0.5000000000001")
		}
		m := map[string]any{"source": d.source(), "threshold": map[string]any{"low": low, "high": high}}
		d.maybe(m, "role", []any{"Both", "UpOnly", "DownVeto"}, "None")
		return m
	})}
	d.maybe(r, "profile", []any{"kaito", "seed", "responsive"}, "llm")
	d.maybe(r, "cooldownScope", []any{"Any", "PerDirection"}, "None")
	d.maybe(r, "holdWhilePending", []any{true, false})
	for _, rule := range []string{"scaleUpRule", "scaleDownRule"} {
		s := map[string]any{}
		d.maybe(s, "scaleStep", []any{1, 2147483647}, 0)
		d.maybe(s, "cooldownSeconds", []any{0, 604800}, -1, 604801)
		d.maybe(s, "stabilizationWindowSeconds", []any{0, 86400}, -1, 86401)
		d.maybe(r, rule, []any{s})
	}
	return r
}

func (d draw) proportional() map[string]any {
	p := map[string]any{"metrics": d.metrics(func(int) map[string]any {
		m := map[string]any{"source": d.source(), "target": d.of("target", 1, "0.000000001", 999999999999)}
		if d.seldom() {
			m["target"] = d.of("bad target", 0, "0.0", "0.0000000001", "a")
		}
		d.maybe(m, "measure", []any{"PerPod", "Total", "Average"}, "Sum")
		return m
	})}
	if len(p["metrics"].([]any)) == 1 || d.seldom() {
		d.forecast(p)
	}
	d.maybe(p, "profile", []any{"llm", "kthena", "kpa", "hpa"}, "seed")
	d.maybe(p, "stableWindowSeconds", []any{0, 5, 6, 15, 30, 60, 600, 3600}, -1, 601, 3601)
	d.maybe(p, "panic", []any{
		map[string]any{"windowSeconds": 0, "threshold": 0},
		map[string]any{"windowSeconds": 5, "threshold": 2},
		map[string]any{"windowSeconds": 30, "threshold": "1.5"},
		map[string]any{"windowSeconds": 61, "threshold": 2},
	}, map[string]any{"windowSeconds": 5, "threshold": 0}, map[string]any{"windowSeconds": 0, "threshold": 2}, map[string]any{"windowSeconds": 5, "threshold": 1})
	for _, rule := range []string{"scaleUp", "scaleDown"} {
		s := map[string]any{}
		d.maybe(s, "tolerance", []any{0, "0.1", 1}, "1.1", 2)
		d.maybe(s, "maxRate", []any{0, 2, "1.000000001"}, 1, "0.5")
		d.maybe(s, "maxStep", []any{0, 1, 2147483647}, -1)
		d.maybe(p, rule, []any{s})
	}
	window := map[string]any{}
	d.maybe(window, "upSeconds", []any{0, 15, 600}, 601, 3601, -1)
	d.maybe(window, "downSeconds", []any{0, 15, 600}, 601, 3601, -1)
	d.maybe(p, "stabilization", []any{window})
	limits := map[string]any{}
	for _, direction := range []string{"up", "down"} {
		l := map[string]any{"limits": []any{d.of("limit", map[string]any{"replicas": 1, "periodSeconds": 1}, map[string]any{"percent": 2147483647, "periodSeconds": 1800})}}
		if d.seldom() {
			l["limits"] = []any{d.of("bad limit", map[string]any{"periodSeconds": 1}, map[string]any{"replicas": 1, "percent": 1, "periodSeconds": 1}, map[string]any{"replicas": 0, "periodSeconds": 1})}
		}
		d.maybe(l, "select", []any{"Max", "Min", "Disabled"}, "Most")
		d.maybe(limits, direction, []any{l})
	}
	d.maybe(p, "rateLimits", []any{limits})
	d.maybe(p, "activationScale", []any{0, 2147483647}, -1)
	d.maybe(p, "startupCredit", []any{true, false})
	return p
}

func (d draw) cron() map[string]any {
	c := map[string]any{}
	d.maybe(c, "mode", []any{"HoldLast", "Match", "InWindow"}, "Last")
	schedules := []any{"0 8 * * *", "@daily", "*/15 1,2 1-5 JAN-MAR MON", "0  0\t1 1 ?"}
	windows := c["mode"] == "InWindow" != d.seldom()
	list := "policies"
	if windows {
		list = "windows"
		d.maybe(c, "outside", []any{0, 3, 2147483647}, -1)
	}
	var all []any
	for i := range rapid.IntRange(1, 3).Draw(d.T, "entries") {
		e := map[string]any{"name": "n" + string(rune('0'+i)), "targetReplicas": d.of("replicas", 0, 1, 2147483647)}
		if windows {
			e["start"], e["end"] = d.of("start", schedules...), d.of("end", append(schedules, "30 9 * * *")...)
		} else {
			e["schedule"] = d.of("schedule", schedules...)
		}
		d.maybe(e, "timeZone", []any{"Etc/UTC", "America/New_York", "UTC", "America/Argentina/Buenos_Aires"}, "Local", "localtime", "", "/a")
		d.maybe(e, "name", []any{e["name"]}, "", "n0", "a b", " ")
		all = append(all, e)
	}
	c[list] = all
	return c
}
