// Package command has what the binaries of several controllers have in common.
package command

import (
	"fmt"
	"runtime/debug"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config returns how to reach the API server: by a kubeconfig file or, if that is empty, by $KUBECONFIG, or as a pod. Name
// is what the API server's logs have for it, qps and burst bound its requests a second, on average and at once.
func Config(name, kubeconfig string, qps float64, burst int) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("how to reach the API server: %w", err)
	}
	config.QPS, config.Burst = float32(qps), burst
	config.UserAgent = name + "/" + Version()
	return config, nil
}

// Version is that of the module, or of the commit that the binary was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "devel"
}
