package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/adapters/keda"
)

// TestAScaledObjectIsReadOnce while it stays as it is, however many of its triggers ask, and forgotten when it is gone.
func TestAScaledObjectIsReadOnce(t *testing.T) {
	var o objects
	ref := keda.Ref{Namespace: "models", Name: "chat"}
	u := scaledObject()
	u.SetNamespace(ref.Namespace)
	u.SetName(ref.Name)
	read := func(uid, version, target string) string {
		u.SetUID(types.UID(uid))
		u.SetResourceVersion(version)
		u.Object["spec"] = map[string]any{"scaleTargetRef": map[string]any{"name": target}}
		object, err := o.read(ref, u)
		if err != nil {
			return err.Error()
		}
		return object.Target.Name
	}
	require.Equal(t, "a", read("u", "1", "a"))
	require.Equal(t, "a", read("u", "1", "b"), "what is of one version is not read again")
	require.Equal(t, "b", read("u", "2", "b"))
	require.Equal(t, "c", read("v", "2", "c"), "another of its name")
	require.Contains(t, read("v", "3", ""), "spec.scaleTargetRef.name")
	require.Contains(t, read("v", "3", "d"), "spec.scaleTargetRef.name", "an error is of its version too")
	for _, gone := range []any{u, cache.DeletedFinalStateUnknown{Key: "models/chat", Obj: u}} {
		read("v", "4", "d")
		o.removed(gone)
		require.Empty(t, o.all)
	}
}
