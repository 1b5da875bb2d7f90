// Package crd has the CustomResourceDefinition of the LLMAutoScaler. It is generated from the types.
package crd

import (
	_ "embed"
)

//go:embed autoscaling.inferscale.io_llmautoscalers.yaml
var llmAutoScaler string

// LLMAutoScaler returns the CustomResourceDefinition of the LLMAutoScaler, in YAML.
func LLMAutoScaler() string { return llmAutoScaler }
