package keda

import (
	"slices"
	"strings"
)

// Known reports whether ParseMetadata reads a key, for a webhook that warns of other keys.
func Known(key string) bool {
	key = strings.TrimSuffix(key, fromEnv)
	return dotted(key) || slices.Contains(ownKeys(), key) || slices.Contains(sourceKeys(), key)
}

func ownKeys() []string {
	return slices.Concat([]string{
		"scalerName", "mode", "threshold", "metricType", "scrapeTimeout", "tlsServerName", "tlsInsecureSkipVerify", "grouping", "interval",
		"workspaceName", "workspaceNamespace", "targetName", "targetNamespace", "targetAPIVersion", "targetKind",
	}, replicasKeys(), kedaKeys())
}

// replicasKeys are the keys that exist only in mode replicas, in addition to the paths of fields.
func replicasKeys() []string {
	return []string{"policy", "profile", "lowThreshold", "minReplicas", "maxReplicas", "stateName", "scaler", "shadow", "attainment"}
}

// kedaKeys are keys that KEDA reads and this package ignores.
func kedaKeys() []string { return []string{"scalerAddress", "enableTLS", "unsafeSsl"} }

func sourceKeys() []string {
	return []string{"metricName", "metricProtocol", "metricPorotocol", "metricPort", "metricPath", "aggregation", "engine", "signal", "quantile"}
}
