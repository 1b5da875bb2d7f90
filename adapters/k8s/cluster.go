package k8s

import (
	"context"
	"strings"

	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// A Cluster has the clients that loops need. For makes one from a configuration; a program that has clients can fill them in
// itself.
type Cluster struct {
	Client kubernetes.Interface
	Scales ScaleClient
	// Budget bounds the memory for the pods' metrics pages, for all Settings together; nil means a budget of 64 MiB for each.
	Budget *scrape.Budget
}

// For returns the Cluster of a client configuration, with clients for every kind that the API server knows. It sends no
// requests yet.
func For(config *rest.Config) (*Cluster, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discovery := memory.NewMemCacheClient(client.Discovery())
	mapper := Remembering(restmapper.NewDeferredDiscoveryRESTMapper(discovery))
	getter, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discovery))
	if err != nil {
		return nil, err
	}
	budget, err := scrape.NewBudget(0)
	if err != nil {
		return nil, err
	}
	return &Cluster{Client: client, Scales: NewScales(getter, mapper), Budget: budget}, nil
}

// stateOf returns the name of the ConfigMap of a target: no two kinds have the same.
func stateOf(t Target) string {
	kind := strings.ToLower(t.Kind)
	if group, _, ok := strings.Cut(t.APIVersion, "/"); ok && group != "apps" {
		kind += "." + strings.ToLower(group)
	}
	return "inferscale-" + kind + "-" + t.Name
}

// Settings returns working Settings for a loop. The state is in the ConfigMap inferscale-KIND-NAME of the target's namespace,
// for example inferscale-deployment-chat; outside of Kubernetes' own group apps the group is behind the kind, as in
// inferscale-workspace.kaito.sh-chat. Every pod that the target's selector selects is a replica; it is scraped at the
// metrics' endpoints, at the default interval of a loop. Without metrics no pod is scraped, and only the clock decides. The
// caller may change any of the settings. For the variants of one model, use the Settings of one of them.
//
// Settings watches the pods of the target's namespace until ctx ends. It returns when its cache is filled, or with the error
// of ctx.
func (c *Cluster) Settings(ctx context.Context, t Target, metrics ...scrape.Metric) (Settings, error) {
	if c.Client == nil {
		return Settings{}, &scaling.FieldError{Field: "client", Rule: "must be set"}
	}
	store, err := NewConfigMapStore(ConfigMapStoreConfig{
		Client: c.Client.CoreV1(), Namespace: t.Namespace, Name: stateOf(t),
	})
	if err != nil {
		return Settings{}, err
	}
	s := Settings{Scales: c.Scales, Store: store}
	if len(metrics) == 0 {
		return s, nil
	}
	scraper, err := scrape.New(scrape.Config{Metrics: metrics, Interval: defaultInterval, Budget: c.Budget, Tenant: t.Namespace})
	if err != nil {
		return Settings{}, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(c.Client, 0, informers.WithNamespace(t.Namespace))
	informer := factory.Core().V1().Pods()
	pods, err := NewPods(informer.Lister(), Grouping{})
	if err != nil {
		return Settings{}, err
	}
	follow := informer.Informer().HasSynced
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), follow) {
		return Settings{}, ctx.Err()
	}
	s.Observer, err = NewPodObserver(pods, scraper, Port{})
	return s, err
}
