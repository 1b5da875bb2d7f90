// Package controller carries out the configuration of variantautoscaler: a k8s.VariantLoop for each model.
//
// A Watcher follows the ConfigMap with the configuration and keeps the last good one. A Runner, of which one leads at a
// time, keeps a loop for each model of it; Once makes one round of each and shows the outcome.
package controller
