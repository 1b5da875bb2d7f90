package policy_test

import (
	"fmt"

	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/saturation"
)

// An entry of a model's own replaces the default as a whole; one that is wrong is reported, and the default is used.
func ExampleReadThresholds() {
	table, err := policy.ReadThresholds(map[string]string{
		"default": "{kvCacheThreshold: 0.80, queueLengthThreshold: 5, kvSpareTrigger: 0.1, queueSpareTrigger: 3}",
		"meta/llama-70b#production": `
kvCacheThreshold: 0.85
queueLengthThreshold: 5
kvSpareTrigger: 0.15
queueSpareTrigger: 3`,
		"meta/llama-8b#production": "{kvCacheTreshold: 0.85, queueLengthThreshold: 5, kvSpareTrigger: 0.15, queueSpareTrigger: 3}",
	}, saturation.Default)
	fmt.Println(err)
	for _, model := range []string{"meta/llama-70b", "meta/llama-8b"} {
		thresholds, key, _ := table.Resolve(model, "production")
		fmt.Printf("%s: %s %+v\n", model, key, thresholds)
	}
	// Output:
	// entry "meta/llama-8b#production":1: kvCacheTreshold: 0.85: is not a field here: is it kvCacheThreshold? the fields are kvCacheThreshold, queueLengthThreshold, kvSpareTrigger, queueSpareTrigger, model_id, namespace
	// entry "meta/llama-8b#production":1: kvCacheThreshold: must be given
	// meta/llama-70b: meta/llama-70b#production {KVCache:0.85 QueueLength:5 KVSpare:0.15 QueueSpare:3}
	// meta/llama-8b: default {KVCache:0.8 QueueLength:5 KVSpare:0.1 QueueSpare:3}
}
