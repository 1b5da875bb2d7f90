package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/policy"
)

// TestRegressionManifestsThatAreRefused: manifests were read that no API server takes.
func TestRegressionManifestsThatAreRefused(t *testing.T) {
	const (
		kind = "apiVersion: autoscaling.inferscale.io/v1alpha1\nkind: LLMAutoScaler\n"
		spec = "spec:\n  scaleTargetRef:\n    apiVersion: apps/v1\n    kind: Deployment\n    name: a\n  maxReplicas: 3\n  scaler: {static: {replicas: 1}}\n"
		rule = "must be at most 253 of a-z, 0-9, - and ., and each part between dots must begin and end with one of a-z and 0-9"
	)
	for metadata, want := range map[string][]string{
		"":                                            {"p.yaml:1: metadata: must be given"},
		"metadata:\n":                                 {"p.yaml:3: metadata: null: must be a mapping"},
		"metadata: []\n":                              {"p.yaml:3: metadata: a list: must be a mapping"},
		"metadata: a\n":                               {`p.yaml:3: metadata: "a": must be a mapping`},
		"metadata: {}\n":                              {"p.yaml:3: metadata.name: must be given"},
		"metadata: {name: ''}\n":                      {"p.yaml:3: metadata.name: must be given"},
		"metadata: {name: 8}\n":                       {"p.yaml:3: metadata.name: 8: must be text; numbers and the like need quotes"},
		"metadata: {name: Chat}\n":                    {`p.yaml:3: metadata.name: "Chat": ` + rule},
		"metadata: {name: realtime/kaito}\n":          {`p.yaml:3: metadata.name: "realtime/kaito": ` + rule},
		"metadata: {name: a..b}\n":                    {`p.yaml:3: metadata.name: "a..b": ` + rule},
		"metadata: {name: \"a\\e\"}\n":                {`p.yaml:3: metadata.name: "a\x1b": must be of printable characters`},
		"metadata: {generateName: '-'}\n":             {`p.yaml:3: metadata.generateName: "-": ` + rule},
		"metadata: {generateName: a.}\n":              {`p.yaml:3: metadata.generateName: "a.": ` + rule},
		"metadata: {name: a, namespace: a.b}\n":       {`p.yaml:3: metadata.namespace: "a.b": must be at most 63 of a-z, 0-9 and -, and neither begin nor end with -`},
		"metadata:\n  name: a\n  name: b\n":           {`p.yaml:5: metadata.name: "b": must be given once; it is on line 4`},
		"metadata: {name: a, [b]: c}\n":               {"p.yaml:3: metadata.key: a list: must be text"},
		"metadata: {name: a}\nstatus: {c: 1, c: 2}\n": {"p.yaml:4: status.c: 2: must be given once; it is on line 4"},
		"metadata:\n  name: a\n  ownerReferences:\n  - uid: b\n    uid: [c]\n": {
			"p.yaml:7: metadata.ownerReferences[0].uid: a list: must be given once; it is on line 6",
		},
	} {
		_, err := policy.Read([]byte(kind+metadata+spec), "p.yaml")
		require.EqualError(t, err, strings.Join(want, "\n"), metadata)
	}
	for field, want := range map[string]string{
		"apiVersion: apps/v1": `p.yaml:6: spec.scaleTargetRef.apiVersion: "": must be "version" or "group/version"`,
		"kind: Deployment":    `p.yaml:7: spec.scaleTargetRef.kind: "": must not be empty`,
		"name: a\n  max":      `p.yaml:8: spec.scaleTargetRef.name: "": must not be empty`,
	} {
		name, value, _ := strings.Cut(field, ": ")
		_, after, more := strings.Cut(value, "\n")
		empty := name + `: ""`
		if more {
			empty += "\n" + after
		}
		_, err := policy.Read([]byte(head+strings.Replace(spec, field, empty, 1)), "p.yaml")
		require.EqualError(t, err, want)
	}
	for metadata, want := range map[string]string{
		"{name: a.b-c, labels: {a: b}, annotations: {a: b}}": "a.b-c",
		"{generateName: chat-}":                              "chat",
		"{name: chat, generateName: chat-, namespace: b}":    "chat",
		"{name: '8', namespace: ''}":                         "8",
	} {
		p := one(t, kind+"metadata: "+metadata+"\n"+spec)
		require.Equal(t, want, p.Name)
		readsBack(t, p)
	}
	deep := kind + "metadata: " + strings.Repeat("{a: ", 5000) + "1" + strings.Repeat("}", 5000) + "\n" + spec
	_, err := policy.Read([]byte(deep), "p.yaml")
	require.EqualError(t, err, "p.yaml:3: metadata.name: must be given")
}

// TestRegressionEmptyTextIsRefusedInManifests: it was read as if the field were not given, and an API server refuses it.
func TestRegressionEmptyTextIsRefusedInManifests(t *testing.T) {
	const (
		scaled = "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}, maxReplicas: 3, %s}\n"
		worked = `scaler: {capacity: {slo: {ttftSeconds: 2, tpotSeconds: "0.1"}, server: {name: qwen3-32b-2xh100}, %s}}`
		loaded = "scaler: {proportional: {metrics: [{target: 3%s}]%s}}"
	)
	for field, text := range map[string]string{
		"grouping":                                       `grouping: "", scaler: {static: {replicas: 1}}`,
		"scrape.portName":                                `scrape: {portName: ""}, scaler: {static: {replicas: 1}}`,
		"scrape.tls.serverName":                          `scrape: {tls: {serverName: ""}}, scaler: {static: {replicas: 1}}`,
		"scrape.bearerTokenSecretRef.key":                `scrape: {bearerTokenSecretRef: {name: a, key: ""}}, scaler: {static: {replicas: 1}}`,
		"scaler.capacity.forecast.mode":                  fmt.Sprintf(worked, `forecast: {mode: ""}`),
		"scaler.capacity.forecast.timeZone":              fmt.Sprintf(worked, `forecast: {timeZone: ""}`),
		"scaler.capacity.source.engine":                  fmt.Sprintf(worked, `source: {engine: ""}`),
		"scaler.capacity.source.path":                    fmt.Sprintf(worked, `source: {path: ""}`),
		"scaler.proportional.profile":                    fmt.Sprintf(loaded, "", `, profile: ""`),
		"scaler.proportional.metrics[0].measure":         fmt.Sprintf(loaded, `, measure: ""`, ""),
		"scaler.proportional.metrics[0].source.name":     fmt.Sprintf(loaded, `, source: {name: ""}`, ""),
		"scaler.proportional.metrics[0].source.protocol": fmt.Sprintf(loaded, `, source: {protocol: ""}`, ""),
		"scaler.proportional.rateLimits.up.select":       fmt.Sprintf(loaded, "", `, rateLimits: {up: {select: ""}}`),
		"scaler.cron.mode":                               `scaler: {cron: {mode: "", policies: [{name: a, schedule: "@daily", targetReplicas: 2}]}}`,
		"scaler.cron.policies[0].timeZone":               `scaler: {cron: {policies: [{name: a, schedule: "@daily", targetReplicas: 2, timeZone: ""}]}}`,
	} {
		_, err := policy.Read([]byte("apiVersion: autoscaling.inferscale.io/v1alpha1\nkind: LLMAutoScaler\nmetadata: {name: a}\n"+fmt.Sprintf(scaled, text)), "p.yaml")
		require.EqualError(t, err, "p.yaml:4: spec."+field+`: "": must not be empty: an API server takes no empty text here`)
	}
	one(t, `proportional: {metrics: [{target: 3, measure: ""}], profile: "", forecast: {mode: "", timeZone: ""}}`) // which no API server has to read
}

// TestRegressionSignalThatAnEngineLacks: a policy on it was read, simulated and ranked, and no cluster took it.
func TestRegressionSignalThatAnEngineLacks(t *testing.T) {
	const scaler = "realtime:\n  metrics: [{source: {engine: %s, signal: %s}, threshold: {high: 1, low: 0}}]\n"
	lacks := map[policy.Engine][]policy.Signal{
		"TGI":      {"TTFT", "PrefixCacheHitRate", "Preemptions"},
		"TRTLLM":   {"Preemptions"},
		"Triton":   {"TPOT", "PrefixCacheHitRate", "Preemptions"},
		"Dynamo":   {"Preemptions"},
		"LlamaCPP": {"KVCacheUsage", "TTFT", "TPOT", "PrefixCacheHitRate", "Preemptions"},
	}
	for _, e := range policy.Engines() {
		for _, s := range policy.Signals() {
			_, err := policy.Read(fmt.Appendf(nil, scaler, e, s), "p.yaml")
			if slices.Contains(lacks[e], s) {
				require.EqualError(t, err, fmt.Sprintf("p.yaml:2: realtime.metrics[0].source.signal: %q: %s has none", s, e))
			} else {
				require.NoError(t, err, "%s %s", e, s)
			}
		}
	}
}
