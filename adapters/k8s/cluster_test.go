package k8s_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

const waiting = "vllm:num_requests_waiting"

var (
	start  = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	target = k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "llama"}
)

// A cluster is an API server as far as loops need one: scales and one ConfigMap, with resource versions that are heeded,
// which client-go's own fakes do not do.
type cluster struct {
	version  int
	scales   map[string]*autoscalingv1.Scale
	data     *corev1.ConfigMap
	updates  int // attempts to write a scale
	saves    int // attempts to write the state
	written  []int32
	fault    func(call string, effect func()) error // decides what becomes of a call; nil lets it have its effect
	selector string
}

func newCluster(replicas int32, names ...string) *cluster {
	c := &cluster{scales: map[string]*autoscalingv1.Scale{}, selector: "app=llama"}
	if len(names) == 0 {
		names = []string{"llama"}
	}
	for _, name := range names {
		c.scales[name] = &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: c.next(), UID: types.UID("uid-" + name)},
			Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
			Status:     autoscalingv1.ScaleStatus{Replicas: replicas, Selector: c.selector},
		}
	}
	return c
}

func (c *cluster) next() string {
	c.version++
	return strconv.Itoa(c.version)
}

// recreate puts another target in the place of one, with a count of its own.
func (c *cluster) recreate(name string, replicas int32) {
	s := c.scales[name]
	s.UID, s.ResourceVersion, s.Spec.Replicas = s.UID+"-again", c.next(), replicas
}

// touch changes a target without changing its replicas, as a status update does.
func (c *cluster) touch(name string) { c.scales[name].ResourceVersion = c.next() }

func (c *cluster) replicas(name string) int32 { return c.scales[name].Spec.Replicas }

func (c *cluster) call(name string, effect func() error) error {
	if c.fault == nil {
		return effect()
	}
	var err error
	if injected := c.fault(name, func() { err = effect() }); injected != nil {
		return injected
	}
	return err
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}})
	m.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	return m
}

func (c *cluster) scaleClient() *k8s.Scales {
	client := &scalefake.FakeScaleClient{}
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	client.AddReactor("get", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.GetAction).GetName()
		var answer *autoscalingv1.Scale
		err := c.call("get scale", func() error {
			s, ok := c.scales[name]
			if !ok {
				return apierrors.NewNotFound(resource, name)
			}
			answer = s.DeepCopy()
			return nil
		})
		return true, answer, err
	})
	client.AddReactor("update", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		c.updates++
		asked := action.(clienttesting.UpdateAction).GetObject().(*autoscalingv1.Scale)
		var answer *autoscalingv1.Scale
		err := c.call("update scale", func() error {
			s, ok := c.scales[asked.Name]
			switch {
			case !ok:
				return apierrors.NewNotFound(resource, asked.Name)
			case asked.ResourceVersion != s.ResourceVersion:
				return apierrors.NewConflict(resource, asked.Name, fmt.Errorf("version %s is not %s", asked.ResourceVersion, s.ResourceVersion))
			}
			s.Spec.Replicas = asked.Spec.Replicas
			s.ResourceVersion = c.next()
			c.written = append(c.written, s.Spec.Replicas)
			answer = s.DeepCopy()
			return nil
		})
		return true, answer, err
	})
	return k8s.NewScales(client, mapper())
}

func (c *cluster) configMaps() *fake.Clientset {
	client := &fake.Clientset{}
	resource := schema.GroupResource{Resource: "configmaps"}
	client.AddReactor("*", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		var answer *corev1.ConfigMap
		if action.GetVerb() != "get" {
			c.saves++
		}
		err := c.call(action.GetVerb()+" state", func() error {
			switch a := action.(type) {
			case clienttesting.CreateAction:
				if c.data != nil {
					return apierrors.NewAlreadyExists(resource, c.data.Name)
				}
				c.data = a.GetObject().(*corev1.ConfigMap).DeepCopy()
			case clienttesting.PatchAction:
				if c.data == nil {
					return apierrors.NewNotFound(resource, a.GetName())
				}
				var patch corev1.ConfigMap
				if err := json.Unmarshal(a.GetPatch(), &patch); err != nil {
					return err
				}
				if patch.ResourceVersion != c.data.ResourceVersion {
					return apierrors.NewConflict(resource, a.GetName(), fmt.Errorf("version %s is not %s", patch.ResourceVersion, c.data.ResourceVersion))
				}
				maps.Copy(c.data.Data, patch.Data)
			default:
				if c.data == nil {
					return apierrors.NewNotFound(resource, "state")
				}
				answer = c.data.DeepCopy()
				return nil
			}
			c.data.ResourceVersion = c.next()
			answer = c.data.DeepCopy()
			return nil
		})
		return true, answer, err
	})
	return client
}

func (c *cluster) store(t require.TestingT) k8s.Store {
	s, err := k8s.NewConfigMapStore(k8s.ConfigMapStoreConfig{Client: c.configMaps().CoreV1(), Namespace: "default", Name: "state"})
	require.NoError(t, err)
	return s
}

// observer is a fleet whose readings are set by hand.
type observer struct {
	value float64
	none  bool
	err   error
}

func (o *observer) Observe(_ context.Context, scales []k8s.Scale) (k8s.Observed, error) {
	seen := k8s.Observed{Fleets: make([]k8s.FleetView, len(scales))}
	for i := range scales {
		seen.Fleets[i].Ready = scales[i].Replicas
	}
	r := scaling.Reading{Metric: waiting}
	if !o.none {
		r = scaling.Exactly(waiting, o.value)
	}
	seen.Readings = []scaling.Reading{r}
	return seen, o.err
}

// policy steps by one, after 30 s above 10 or below 2, with a cooldown of 60 s.
func policy(t require.TestingT) scaling.Policy {
	c := realtime.Kaito(scaling.Bounds{Min: 1, Max: 8}, realtime.Metric{Name: waiting, High: 10, Low: 2})
	c.Up.Cooldown, c.Up.Window = time.Minute, 30*time.Second
	c.Down.Cooldown, c.Down.Window = time.Minute, 30*time.Second
	s, err := realtime.New(c)
	require.NoError(t, err)
	return scaling.New(s)
}

// clock is a time that stands still until it is moved.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func (c *clock) pass() { c.now = c.now.Add(15 * time.Second) }

func newLoop(t require.TestingT, c *cluster, o k8s.Observer, clock *clock, change func(*k8s.LoopConfig)) *k8s.Loop {
	config := k8s.LoopConfig{
		Target: target, Policy: policy(t), Bounds: scaling.Bounds{Min: 1, Max: 8},
		Settings: k8s.Settings{Scales: c.scaleClient(), Observer: o, Store: c.store(t), Now: clock.read},
	}
	if change != nil {
		change(&config)
	}
	l, err := k8s.NewLoop(config)
	require.NoError(t, err)
	return l
}

// stored returns what the state says of the policy alone.
func (c *cluster) stored(t require.TestingT) string {
	if c.data == nil {
		return ""
	}
	var e struct {
		State struct {
			Group json.RawMessage `json:"group"`
		} `json:"state"`
	}
	require.NoError(t, json.Unmarshal([]byte(c.data.Data["state"]), &e))
	return string(e.State.Group)
}

func tick(t *testing.T, l *k8s.Loop) k8s.Outcome {
	t.Helper()
	o, err := l.Tick(context.Background())
	require.NoError(t, err)
	return o
}
