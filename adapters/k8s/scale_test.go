package k8s_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/inferscale/inferscale/adapters/k8s"
)

func TestScales(t *testing.T) {
	ctx := context.Background()
	c := newCluster(3)
	scales := c.Scales()

	read, err := scales.Get(ctx, target)
	require.NoError(t, err)
	require.EqualValues(t, 3, read.Replicas)
	require.EqualValues(t, 3, read.StatusReplicas)
	require.Equal(t, "app=llama", read.Selector.String())
	require.EqualValues(t, "uid-llama", read.UID)

	written, err := scales.Set(ctx, target, read, 4)
	require.NoError(t, err)
	require.EqualValues(t, 4, written.Replicas)
	require.NotEqual(t, read.ResourceVersion, written.ResourceVersion)

	// What was read is no longer so: nothing is overwritten.
	_, err = scales.Set(ctx, target, read, 5)
	require.ErrorIs(t, err, k8s.ErrConflict)
	require.EqualValues(t, 4, c.Replicas("llama"))
	require.Equal(t, 2, c.Updates, "a conflict is not retried")
	require.ErrorContains(t, err, "cannot write replicas 3 -> 5 of Deployment default/llama: changed since it was read: decide again")

	var e *k8s.TargetError
	require.ErrorAs(t, err, &e)
	require.Equal(t, target, e.Target)

	// What could not be conditional, or is another's, is not sent.
	for _, bad := range []k8s.Scale{{Target: target}, {Target: k8s.Target{Kind: "Other"}, ResourceVersion: "1"}} {
		_, err = scales.Set(ctx, target, bad, 5)
		require.ErrorIs(t, err, k8s.ErrRefused)
	}
	_, err = scales.Set(ctx, target, written, -1)
	require.ErrorIs(t, err, k8s.ErrRefused)
	require.Equal(t, 2, c.Updates)
}

func TestScalesSelector(t *testing.T) {
	c := newCluster(3)
	c.Targets["llama"].Status.Selector = ""
	read, err := c.Scales().Get(context.Background(), target)
	require.NoError(t, err)
	require.Nil(t, read.Selector, "an empty selector is none, not one for every pod")

	c.Targets["llama"].Status.Selector = "app in (("
	_, err = c.Scales().Get(context.Background(), target)
	require.ErrorContains(t, err, `cannot read Deployment default/llama: status.selector "app in (("`)
}

// TestALongSelectorIsRefused: a Deployment may have one of 1.5 MB, to parse which took 0.8 s of a processor in each round.
func TestALongSelectorIsRefused(t *testing.T) {
	c := newCluster(3)
	for _, n := range []int{16<<10 - 1, 16 << 10, 16<<10 + 1, 1500 << 10} {
		selector := "app notin (a" + strings.Repeat(","+strings.Repeat("v", 63), min(n/64-1, 250))
		selector += strings.Repeat(" ", n-len(selector)-1) + ")"
		c.Targets["llama"].Status.Selector = selector
		require.Len(t, selector, n)
		read, err := c.Scales().Get(context.Background(), target)
		if n <= 16<<10 {
			require.NoError(t, err)
			require.False(t, read.Selector.Empty())
			continue
		}
		require.EqualError(t, err, fmt.Sprintf("cannot read Deployment default/llama: status.selector: %d bytes: must be at most 16384", n))
	}
}

// TestASelectorOfManyTermsIsRefused: one of 16 KiB can have 3,275 requirements. To match it against 5,000 pods, which may be pending for
// ever, took 0.3 s of a processor in each round.
func TestASelectorOfManyTermsIsRefused(t *testing.T) {
	c := newCluster(3)
	for terms, selector := range map[int]string{
		256: "app=x" + strings.Repeat(",!a", 254),
		257: "app=x" + strings.Repeat(",!a", 255),
		258: "app in (a" + strings.Repeat(",v", 256) + ")",
	} {
		if terms == 258 {
			for i := range 256 {
				selector = strings.Replace(selector, ",v", fmt.Sprintf(",w%d", i), 1)
			}
		}
		c.Targets["llama"].Status.Selector = selector
		_, err := c.Scales().Get(context.Background(), target)
		if terms <= 256 {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, fmt.Sprintf("cannot read Deployment default/llama: status.selector: %d requirements and values: must be at most 256", terms))
	}
}

// TestNegativeReplicasAreRefused: a custom resource whose definition has no minimum may have them.
func TestNegativeReplicasAreRefused(t *testing.T) {
	c := newCluster(3)
	c.Targets["llama"].Spec.Replicas = -3
	_, err := c.Scales().Get(context.Background(), target)
	require.EqualError(t, err, "cannot read Deployment default/llama: spec.replicas: -3: must not be negative")
	c.Targets["llama"].Spec.Replicas, c.Targets["llama"].Status.Replicas = 3, -1
	_, err = c.Scales().Get(context.Background(), target)
	require.EqualError(t, err, "cannot read Deployment default/llama: status.replicas: -1: must not be negative")
}

func TestScalesErrors(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	page := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "llama", "404 page not found", 0, true)
	for _, c := range []struct {
		name       string
		err        error
		get, write error
	}{
		{"not found", apierrors.NewNotFound(resource, "llama"), k8s.ErrNotFound, k8s.ErrNotFound},
		{"no such path", &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{}}}, k8s.ErrNoScale, k8s.ErrNoScale},
		{"no path", page, k8s.ErrNoScale, k8s.ErrNoScale},
		{"no scale in discovery", errors.New("could not find scale subresource for deployments in discovery information"), nil, k8s.ErrNoScale},
		{"method", apierrors.NewMethodNotSupported(resource, "update"), k8s.ErrNoScale, k8s.ErrNoScale},
		{"forbidden", apierrors.NewForbidden(resource, "llama", errors.New("rbac")), k8s.ErrForbidden, k8s.ErrForbidden},
		{"invalid", apierrors.NewInvalid(schema.GroupKind{Kind: "Scale"}, "llama", nil), nil, k8s.ErrRefused},
		{"too many", apierrors.NewTooManyRequests("slow", 1), nil, k8s.ErrRefused},
		{"bad request", apierrors.NewBadRequest("no"), nil, k8s.ErrRefused},
		{"conflict", apierrors.NewConflict(resource, "llama", nil), nil, k8s.ErrConflict},
		{"timeout", apierrors.NewServerTimeout(resource, "update", 1), nil, k8s.ErrUncertain},
		{"gateway timeout", apierrors.NewTimeoutError("late", 1), nil, k8s.ErrUncertain},
		{"internal", apierrors.NewInternalError(errors.New("etcd")), nil, k8s.ErrUncertain},
		{"no answer", errors.New("connection reset by peer"), nil, k8s.ErrUncertain},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := newCluster(3)
			scales := cluster.Scales()
			read, err := scales.Get(context.Background(), target)
			require.NoError(t, err)
			cluster.Fault = func(string, func()) error { return c.err }
			_, err = scales.Get(context.Background(), target)
			require.ErrorIs(t, err, c.err)
			require.ErrorContains(t, err, "cannot read Deployment default/llama")
			if c.get != nil {
				require.ErrorIs(t, err, c.get)
			}
			_, err = scales.Set(context.Background(), target, read, 4)
			require.ErrorIs(t, err, c.write)
		})
	}
	other := target
	other.Kind = "Workspace"
	_, err := newCluster(1).Scales().Get(context.Background(), other)
	require.ErrorIs(t, err, k8s.ErrNoScale)
	require.ErrorContains(t, err, "Workspace default/llama")
}

func TestTargetValidate(t *testing.T) {
	require.NoError(t, target.Validate("target"))
	err := k8s.Target{APIVersion: "a/b/c"}.Validate("target")
	for _, field := range []string{"target.apiVersion", "target.kind", "target.namespace", "target.name"} {
		require.ErrorContains(t, err, field)
	}
	require.Equal(t, metav1.NamespaceDefault+"/llama", target.String()[len("Deployment "):])
}

// TestRegressionATargetNamesNoPath: clients made of the apiVersion "../metrics" a request for /metrics of the API server.
func TestRegressionATargetNamesNoPath(t *testing.T) {
	for _, apiVersion := range []string{"v1", "apps/v1", "leaderworkerset.x-k8s.io/v1", "kaito.sh/v1alpha1"} {
		ok := target
		ok.APIVersion = apiVersion
		require.NoError(t, ok.Validate("target"), apiVersion)
	}
	for _, apiVersion := range []string{
		"", "/", "..", "../metrics", "apps/..", "apps/", "apps/v1?a=b", "%2e%2e/metrics", "a b/v1", "apps/v1/..", "v1.2", "apps/__internal",
		strings.Repeat("a", 254) + "/v1", "apps/" + strings.Repeat("v", 64),
	} {
		wrong := target
		wrong.APIVersion = apiVersion
		require.EqualError(t, wrong.Validate("target"), fmt.Sprintf(`target.apiVersion: %q: must be "version" or "group/version"`, apiVersion))
	}
	for _, kind := range []string{"..", "a/b", "Deployment ", strings.Repeat("k", 64)} {
		wrong := target
		wrong.Kind = kind
		require.EqualError(t, wrong.Validate("target"), fmt.Sprintf("target.kind: %q: must be at most 63 letters, digits and -", kind))
	}
}
