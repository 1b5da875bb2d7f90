package stored_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
)

func object(name, maxReplicas, status string) string {
	return `{"apiVersion":"autoscaling.inferscale.io/v1alpha1","kind":"LLMAutoScaler","metadata":{"name":"` + name + `","namespace":"b","generation":3},
		"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"chat"},"maxReplicas":` + maxReplicas + `,"scaler":{"static":{"replicas":2}}},"status":` + status + `}`
}

// TestOneUnreadableObject leaves the list that it is part of as it is, with a client's own decoder.
func TestOneUnreadableObject(t *testing.T) {
	list := `{"apiVersion":"autoscaling.inferscale.io/v1alpha1","kind":"LLMAutoScalerList","metadata":{"resourceVersion":"7"},"items":[` +
		object("good", "8", `{"currentReplicas":3}`) + "," +
		object("bad", "3000000000", `{"currentReplicas":3}`) + "," +
		object("fraction", "8.000000001", `{}`) + "," +
		object("status", "8", `{"currentReplicas":1e19}`) + "," +
		object("both", `"many"`, `{"conditions":[{"lastTransitionTime":[]}]}`) + `]}`
	decode := func(add func(*runtime.Scheme) error) (runtime.Object, error) {
		scheme := runtime.NewScheme()
		require.NoError(t, add(scheme))
		found, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode([]byte(list), nil, nil)
		return found, err
	}
	_, err := decode(v1alpha1.AddToScheme)
	require.ErrorContains(t, err, "cannot unmarshal", "which is why")
	found, err := decode(stored.AddToScheme)
	require.NoError(t, err)
	all, ok := found.DeepCopyObject().(*stored.LLMAutoScalerList)
	require.True(t, ok)
	require.Equal(t, "7", all.ResourceVersion)
	require.Len(t, all.Items, 5)
	for i, want := range []struct {
		name         string
		most         int32
		current      bool
		spec, status string
	}{
		{"good", 8, true, "", ""},
		{"bad", 0, true, "number 3000000000 into Go struct field", ""},
		{"fraction", 0, false, "number 8.000000001 into Go struct field", ""},
		{"status", 8, false, "", "currentReplicas"},
		{"both", 0, false, "maxReplicas", "lastTransitionTime"},
	} {
		got := all.Items[i]
		require.Equal(t, want.name, got.Name)
		require.Equal(t, int64(3), got.Generation)
		require.Equal(t, want.most, got.Spec.MaxReplicas)
		require.Equal(t, want.current, got.Status.CurrentReplicas != nil)
		for _, tt := range []struct {
			want string
			err  error
		}{{want.spec, got.SpecErr}, {want.status, got.StatusErr}} {
			if tt.want == "" {
				require.NoError(t, tt.err)
			} else {
				require.ErrorContains(t, tt.err, tt.want)
			}
		}
	}
	plain, err := json.Marshal(all.Items[0].LLMAutoScaler)
	require.NoError(t, err)
	data, err := json.Marshal(all.Items[0])
	require.NoError(t, err)
	require.JSONEq(t, string(plain), string(data))
}

// TestNoObject is an error: there is nothing that could be told of.
func TestNoObject(t *testing.T) {
	for _, text := range []string{"7", "[]", `{"metadata": 7}`, `{"metadata": {"generation": 1e30}, "spec": 7}`} {
		require.Error(t, json.Unmarshal([]byte(text), &stored.LLMAutoScaler{}), text)
	}
}

func ExampleLLMAutoScaler() {
	las := &stored.LLMAutoScaler{}
	err := json.Unmarshal([]byte(`{"metadata": {"name": "chat"}, "spec": {"maxReplicas": 3000000000}}`), las)
	fmt.Println(las.Name, err)
	fmt.Println(strings.Replace(las.SpecErr.Error(), "spec.Settings.", "spec.", 1)) // newer readers name the embedded type too
	// Output:
	// chat <nil>
	// json: cannot unmarshal number 3000000000 into Go struct field LLMAutoScalerSpec.spec.maxReplicas of type int32
}

// TestAnObjectThatIsFullTakesLittleMemory: what the definition leaves free, as shadows and the server of an attainment, may have a megabyte.
func TestAnObjectThatIsFullTakesLittleMemory(t *testing.T) {
	long := `"` + strings.Repeat("x", 1<<20) + `"`
	for name, row := range map[string]struct{ text, spec, status string }{
		"spec":     {strings.Replace(object("a", "8", `{"currentReplicas":3}`), `"scaler":`, `"attainment":{"server":{"a":`+long+`}},"scaler":`, 1), "spec: 1048737: must be at most 262144 bytes of JSON", ""},
		"status":   {object("a", "8", `{"currentReplicas":3,"more":`+long+`}`), "", "status: 1048607: must be at most 262144 bytes of JSON"},
		"both":     {object("a", long, `{"more":`+long+`}`), "spec: 1048705: must be", "status: 10485"},
		"metadata": {strings.Replace(object("a", "8", `{"currentReplicas":3}`), `"generation":3`, `"generation":3,"annotations":{"a":`+long+`}`, 1), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var las stored.LLMAutoScaler
			require.NoError(t, json.Unmarshal([]byte(row.text), &las))
			require.Equal(t, int64(3), las.Generation)
			if row.spec == "" {
				require.NoError(t, las.SpecErr)
				require.Equal(t, "chat", las.Spec.ScaleTargetRef.Name)
			} else {
				require.ErrorContains(t, las.SpecErr, row.spec)
				require.Empty(t, las.Spec)
			}
			if row.status == "" {
				require.NoError(t, las.StatusErr)
				require.Equal(t, int32(3), *las.Status.CurrentReplicas)
			} else {
				require.ErrorContains(t, las.StatusErr, row.status)
				require.Empty(t, las.Status)
			}
		})
	}
}
