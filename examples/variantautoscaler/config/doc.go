// Package config reads the configuration of variantautoscaler: the models, the variants of each, and how they are
// decided on.
//
//	models:
//	  - name: meta/llama-70b            # as in the keys of the thresholds, modelID#namespace
//	    namespace: serving              # that of its variants
//	    algorithm: saturation           # or hetero
//	    interval: 15s
//	    dryRun: true
//	    variants:
//	      - target: {apiVersion: apps/v1, kind: Deployment, name: llama-h100}
//	        cost: 98                    # of a replica, in any unit that all share
//	        capacity: 2                 # of a replica, in any unit that all share; only saturation
//	        min: 1
//	        max: 8
//	        port: http                  # name or number; the same for all variants of a model
//	    saturation:                     # fields of spec.scaler.saturation, as in policy documents
//	      kvCacheThreshold: "0.8"
//	      thresholdsFrom: {configMap: saturation-thresholds}
//
// and with the other algorithm
//
//	hetero:
//	  expansionRate: 2
//	  exchanges: 1                  # or unlimited
//	  whenReady: true
//	  total: {proportional: {profile: llm}}  # a scaler, as in policy documents
//
// It is read strictly: a field that is not known, given twice, of another type or with a value that breaks a rule is an
// error, and all are reported at once, each with its line and path:
//
//	variants.yaml:12: models[0].variants[1].cost: -1: must be a number above 0
package config
