// Package k8stest is an in-memory cluster for tests of programs that run loops of package k8s:
//
//	cluster := k8stest.New(3, target)
//	loop, err := k8s.NewLoop(k8s.LoopConfig{Target: target, Policy: policy, Settings: k8s.Settings{
//		Scales: cluster.Scales(), Store: cluster.Store(), Observer: observer, Now: clock,
//	}})
//	outcome, err := loop.Tick(ctx)
//	// cluster.Replicas("chat") is what was written
//
// It has /scale of its targets and one ConfigMap. Unlike the fakes of client-go it checks resource versions: a write with an
// old version is a conflict. A test controls the faults: [Cluster.Fault] can refuse calls, lose their answers or end the
// process, [Cluster.Delay] lets a write arrive late, [Cluster.BeforeWrite] and [Cluster.Touch] cause conflicts, and
// [Cluster.Recreate] replaces a target with another object of the same name.
package k8stest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// The calls that are passed to a Fault.
const (
	GetScale    = "get scale"
	UpdateScale = "update scale"
	GetState    = "get state"
	CreateState = "create state"
	PatchState  = "patch state"
)

// A Cluster implements those parts of an API server that loops need. It is not safe for concurrent use. Its fields may be
// read and changed between calls and in a Fault.
type Cluster struct {
	// Fault, if set, decides the result of a call. It may call effect, which carries the call out. If it returns an error,
	// that is the answer; otherwise the answer is that of effect. A panic in Fault ends the round, as the end of the process
	// would.
	Fault func(call string, effect func()) error
	// Targets are the /scale of the targets, by name. Call Touch after changing one.
	Targets map[string]*autoscalingv1.Scale
	// ConfigMap is the ConfigMap that a Store created, nil before.
	ConfigMap *corev1.ConfigMap
	// Updates and Saves count the attempts to write a target and the state. Written has the replica counts that were written.
	Updates, Saves int
	Written        []int32

	mapper  meta.RESTMapper
	version int
}

// New returns a Cluster with targets that all have the same replica count. Their names must differ, even in different
// namespaces or for different kinds. The selector of all is "app=" and the name of the first.
func New(replicas int32, targets ...k8s.Target) *Cluster {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	c := &Cluster{Targets: make(map[string]*autoscalingv1.Scale), mapper: mapper}
	for _, t := range targets {
		mapper.Add(schema.FromAPIVersionAndKind(t.APIVersion, t.Kind), meta.RESTScopeNamespace)
		c.Targets[t.Name] = &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name, ResourceVersion: c.NextVersion(), UID: types.UID("uid-" + t.Name)},
			Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
			Status:     autoscalingv1.ScaleStatus{Replicas: replicas, Selector: "app=" + targets[0].Name},
		}
	}
	return c
}

// NextVersion returns a resource version that no object has had before.
func (c *Cluster) NextVersion() string {
	c.version++
	return strconv.Itoa(c.version)
}

// Replicas returns the spec replicas of a target.
func (c *Cluster) Replicas(name string) int32 { return c.Targets[name].Spec.Replicas }

// Touch changes the resource version of a target, as a status update does.
func (c *Cluster) Touch(name string) { c.Targets[name].ResourceVersion = c.NextVersion() }

// Recreate replaces a target with another object of the same name, with its own UID and replica count.
func (c *Cluster) Recreate(name string, replicas int32) {
	s := c.Targets[name]
	s.UID, s.ResourceVersion, s.Spec.Replicas = s.UID+"-again", c.NextVersion(), replicas
}

// Delay holds the next write of a target back, calls then, and answers the write with a lost connection. The returned
// function lets the write arrive. Delay sets Fault.
func (c *Cluster) Delay(then func()) (arrive func()) {
	var late func()
	c.Fault = func(call string, effect func()) error {
		if call != UpdateScale {
			effect()
			return nil
		}
		c.Fault, late = nil, effect
		then()
		return errors.New("connection reset")
	}
	return func() { late() }
}

// BeforeWrite calls do just before the next write of a target, after the target was read. If answer is not nil, the write is
// not carried out and gets this answer. BeforeWrite sets Fault.
func (c *Cluster) BeforeWrite(do func(), answer error) {
	c.Fault = func(call string, effect func()) error {
		if call == UpdateScale {
			c.Fault = nil
			do()
			if answer != nil {
				return answer
			}
		}
		effect()
		return nil
	}
}

func (c *Cluster) call(name string, effect func() error) error {
	if c.Fault == nil {
		return effect()
	}
	var err error
	if injected := c.Fault(name, func() { err = effect() }); injected != nil {
		return injected
	}
	return err
}

// Mapper returns a RESTMapper that knows the kinds of the targets and ConfigMaps.
func (c *Cluster) Mapper() meta.RESTMapper { return c.mapper }

// Scales returns the client of the targets' /scale.
func (c *Cluster) Scales() *k8s.Scales {
	client := &scalefake.FakeScaleClient{}
	client.AddReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.GetAction).GetName()
		var answer *autoscalingv1.Scale
		err := c.call(GetScale, func() error {
			s, ok := c.Targets[name]
			if !ok {
				return apierrors.NewNotFound(action.GetResource().GroupResource(), name)
			}
			answer = s.DeepCopy()
			return nil
		})
		return true, answer, err
	})
	client.AddReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		c.Updates++
		asked := action.(clienttesting.UpdateAction).GetObject().(*autoscalingv1.Scale)
		resource := action.GetResource().GroupResource()
		var answer *autoscalingv1.Scale
		err := c.call(UpdateScale, func() error {
			s, ok := c.Targets[asked.Name]
			switch {
			case !ok:
				return apierrors.NewNotFound(resource, asked.Name)
			case asked.UID != "" && asked.UID != s.UID:
				return apierrors.NewConflict(resource, asked.Name, fmt.Errorf("UID %s is not %s", asked.UID, s.UID))
			case asked.ResourceVersion != s.ResourceVersion:
				return changed(resource, asked.Name, asked.ResourceVersion, s.ResourceVersion)
			}
			s.Spec.Replicas, s.ResourceVersion = asked.Spec.Replicas, c.NextVersion()
			c.Written = append(c.Written, s.Spec.Replicas)
			answer = s.DeepCopy()
			return nil
		})
		return true, answer, err
	})
	return k8s.NewScales(client, c.mapper)
}

func changed(resource schema.GroupResource, name, asked, is string) error {
	return apierrors.NewConflict(resource, name, fmt.Errorf("version %s is not %s", asked, is))
}

// ConfigMaps returns the client of the ConfigMap.
func (c *Cluster) ConfigMaps() corev1client.ConfigMapsGetter {
	client := &fake.Clientset{}
	resource := schema.GroupResource{Resource: "configmaps"}
	client.AddReactor("*", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		var answer *corev1.ConfigMap
		if action.GetVerb() != "get" {
			c.Saves++
		}
		err := c.call(action.GetVerb()+" state", func() (err error) {
			if err = c.effect(resource, action); err == nil {
				answer = c.ConfigMap.DeepCopy()
			}
			return err
		})
		return true, answer, err
	})
	return client.CoreV1()
}

func (c *Cluster) effect(resource schema.GroupResource, action clienttesting.Action) error {
	switch a := action.(type) {
	case clienttesting.CreateAction:
		if c.ConfigMap != nil {
			return apierrors.NewAlreadyExists(resource, c.ConfigMap.Name)
		}
		c.ConfigMap = a.GetObject().(*corev1.ConfigMap).DeepCopy()
	case clienttesting.PatchAction:
		if c.ConfigMap == nil {
			return apierrors.NewNotFound(resource, a.GetName())
		}
		var patch struct {
			metav1.ObjectMeta `json:"metadata"`

			Data map[string]*string `json:"data"`
		}
		if err := json.Unmarshal(a.GetPatch(), &patch); err != nil {
			return err
		}
		if patch.ResourceVersion != c.ConfigMap.ResourceVersion {
			return changed(resource, a.GetName(), patch.ResourceVersion, c.ConfigMap.ResourceVersion)
		}
		for key, value := range patch.Data {
			if value == nil {
				delete(c.ConfigMap.Data, key)
				continue
			}
			c.ConfigMap.Data[key] = *value
		}
	default:
		if c.ConfigMap == nil {
			return apierrors.NewNotFound(resource, "state")
		}
		return nil
	}
	c.ConfigMap.ResourceVersion = c.NextVersion()
	return nil
}

// Store returns a Store in the ConfigMap default/state. Each Store has its own cache, like the stores of two processes.
func (c *Cluster) Store() k8s.Store {
	s, err := k8s.NewConfigMapStore(k8s.ConfigMapStoreConfig{Client: c.ConfigMaps(), Namespace: "default", Name: "state"})
	if err != nil {
		panic(err) // the configuration is always valid
	}
	return s
}
