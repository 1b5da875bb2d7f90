package certs_test

import (
	"strconv"
	"sync"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/inferscale/inferscale/adapters/certs"
)

// A cluster is client-go's fake with what it lacks: resource versions that count and are insisted on.
type cluster struct {
	*fake.Clientset
	mu      sync.Mutex
	version int
	// before is called before each write, outside the lock; an error is what the write comes to.
	before func(verb string, s *corev1.Secret) error
}

func newCluster(secrets ...*corev1.Secret) *cluster {
	c := &cluster{Clientset: fake.NewClientset(), before: func(string, *corev1.Secret) error { return nil }}
	for _, s := range secrets {
		if err := c.Tracker().Add(s); err != nil {
			panic(err)
		}
	}
	for _, verb := range []string{"create", "update"} {
		c.PrependReactor(verb, "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
			s := a.(clienttesting.CreateAction).GetObject().(*corev1.Secret).DeepCopy()
			if err := c.before(verb, s); err != nil {
				return true, nil, err
			}
			return true, s, c.write(verb, s)
		})
	}
	return c
}

func secrets() schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("secrets") }

func (c *cluster) write(verb string, s *corev1.Secret) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	if verb == "create" {
		s.ResourceVersion = strconv.Itoa(c.version)
		return c.Tracker().Create(secrets(), s, s.Namespace)
	}
	old, err := c.Tracker().Get(secrets(), s.Namespace, s.Name)
	if err != nil {
		return err
	}
	if have := old.(*corev1.Secret).ResourceVersion; have != s.ResourceVersion {
		return apierrors.NewConflict(secrets().GroupResource(), s.Name, nil)
	}
	s.ResourceVersion = strconv.Itoa(c.version)
	return c.Tracker().Update(secrets(), s, s.Namespace)
}

func (c *cluster) get(t fatal, name string) *corev1.Secret {
	t.Helper()
	s, err := c.Tracker().Get(secrets(), "keda", name)
	require.NoError(t, err)
	return s.(*corev1.Secret).DeepCopy()
}

// edit does what a person does.
func (c *cluster) edit(t fatal, name string, change func(*corev1.Secret)) {
	t.Helper()
	s := c.get(t, name)
	change(s)
	require.NoError(t, c.write("update", s))
}

func (c *cluster) remove(t fatal, name string) {
	t.Helper()
	require.NoError(t, c.Tracker().Delete(secrets(), "keda", name))
}

// verbs are the calls that were made.
func (c *cluster) verbs() []string {
	var out []string
	for _, a := range c.Actions() {
		name := ""
		switch a := a.(type) {
		case clienttesting.GetAction:
			name = a.GetName()
		case clienttesting.CreateAction:
			name = a.GetObject().(*corev1.Secret).Name
		}
		out = append(out, a.GetVerb()+" "+name)
	}
	c.ClearActions()
	return out
}

func newKeeper(t fatal, c *cluster, now *clock, actions *[]certs.Action) *certs.Keeper {
	t.Helper()
	config := certs.KeeperConfig{Client: c.CoreV1(), Rules: rules(), Namespace: "keda", Now: now.now}
	if actions != nil {
		config.OnAction = func(a certs.Action) { *actions = append(*actions, a) }
	}
	k, err := certs.NewKeeper(config)
	require.NoError(t, err)
	return k
}

// material is what a client reads.
func materialOf(s *corev1.Secret) certs.Material {
	return certs.Material{
		Bundle: s.Data["ca.crt"],
		Client: certs.Pair{Cert: s.Data["tls.crt"], Key: s.Data["tls.key"]},
		Server: certs.Pair{Cert: s.Data["server.crt"], Key: s.Data["server.key"]},
	}
}
