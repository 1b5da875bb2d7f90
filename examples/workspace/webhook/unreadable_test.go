package webhook_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/inferscale/inferscale/examples/workspace/webhook"
)

// TestRegressionAnUnreadableWorkspaceCanBeDeleted: the update that takes the last finalizer away was refused, as the spec could not
// be read, so that a workspace of an older definition was never gone. One that stays must still be readable.
func TestRegressionAnUnreadableWorkspaceCanBeDeleted(t *testing.T) {
	decoder := admission.NewDecoder(newScheme(t))
	for name, handler := range map[string]admission.Handler{
		"defaulter": webhook.NewDefaulter(decoder, fixed{n: 7}), "validator": webhook.NewValidator(decoder),
	} {
		ask := func(fresh, old map[string]any) admission.Response {
			object := func(meta map[string]any) map[string]any {
				meta["name"], meta["namespace"] = "llama", "default"
				return map[string]any{
					"apiVersion": "workspace.inferscale.io/v1alpha1", "kind": "Workspace", "metadata": meta,
					"spec": map[string]any{
						"resource": map[string]any{"instanceType": "a"}, "inference": map[string]any{"replicas": 3000000000},
					},
				}
			}
			return handler.Handle(t.Context(), request(t, "", object(fresh), object(old)))
		}
		const deleted = "2026-01-15T08:00:00Z"
		finalizers := []string{"foregroundDeletion"}
		before := map[string]any{"deletionTimestamp": deleted, "finalizers": finalizers}
		answer := ask(map[string]any{"deletionTimestamp": deleted}, before)
		require.True(t, answer.Allowed, "%s: %v", name, answer.Result)
		require.Empty(t, answer.Patches, name)

		answer = ask(map[string]any{}, map[string]any{"finalizers": finalizers})
		require.False(t, answer.Allowed, name)
		require.Contains(t, answer.Result.Message, "3000000000", name)
	}
}
