// Package command has what the binaries of several controllers have in common.
package command

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/inferscale/inferscale/adapters/k8s"
)

var logging sync.Once //nolint:gochecknoglobals // it guards globals of client-go and controller-runtime

// Log lets client-go and controller-runtime log to h. They have one logger for the process and do not guard it, and what they
// began goes on for a moment after its context has ended: only the first call does anything.
func Log(h slog.Handler) {
	logging.Do(func() {
		log.SetLogger(logr.FromSlogHandler(h))
		klog.SetSlogLogger(slog.New(h))
	})
}

// Config returns how to reach the API server: by a kubeconfig file or, if that is empty, by $KUBECONFIG, or as a pod. Name
// is what the API server's logs have for it, qps and burst bound its requests a second, on average and at once.
func Config(name, kubeconfig string, qps float64, burst int) (*rest.Config, error) {
	config, err := reach(kubeconfig).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("how to reach the API server: %w", err)
	}
	config.QPS, config.Burst = float32(qps), burst
	config.UserAgent = name + "/" + Version()
	return config, nil
}

// Namespace returns the namespace of a kubeconfig file as Config finds it, or that of the pod.
func Namespace(kubeconfig string) (string, error) {
	namespace, _, err := reach(kubeconfig).Namespace()
	return namespace, err
}

func reach(kubeconfig string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
}

// Starting returns the error of a start, nil if ctx has ended: what is asked to end while it starts has not failed.
func Starting(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// LabelRule is what the name of a namespace must be.
const LabelRule = "must be at most 63 of a-z, 0-9 and -, and neither begin nor end with -"

// IsLabel reports whether a namespace can have a name.
func IsLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// NameRule is what the name of an object must be.
const NameRule = "must be at most 253 of a-z, 0-9, - and ., and each part between dots must begin and end with one of a-z and 0-9"

// IsName reports whether an object can have a name.
func IsName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// List returns what a flag lists between commas, without the spaces around.
func List(text string) []string {
	var all []string
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// Scales returns the client of /scale by what a manager has, and the mapper for targets: it remembers kinds, as the manager's
// makes all wait while it asks for one that it does not know.
func Scales(config *rest.Config, client *http.Client, mapper meta.RESTMapper) (*k8s.Scales, meta.RESTMapper, error) {
	mapper = k8s.Remembering(mapper)
	discoverer, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, nil, err
	}
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discoverer))
	if err != nil {
		return nil, nil, err
	}
	return k8s.NewScales(scales, mapper), mapper, nil
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
