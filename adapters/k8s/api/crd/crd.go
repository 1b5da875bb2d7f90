// Package crd has the definition of the LLMAutoScaler that an API server takes. It is generated from the types.
package crd

import (
	_ "embed"
)

//go:embed autoscaling.inferscale.io_llmautoscalers.yaml
var llmAutoScaler string

// LLMAutoScaler returns the CustomResourceDefinition of the LLMAutoScaler, in YAML.
func LLMAutoScaler() string { return llmAutoScaler }
