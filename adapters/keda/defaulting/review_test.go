package defaulting_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
)

func request(operation admissionv1.Operation, object string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{UID: "u", Operation: operation, Object: runtime.RawExtension{Raw: []byte(object)}}
}

func TestReview(t *testing.T) {
	d := defaulter(t)
	object := scaledObject(`{"triggers":[` + ours + `]}`)
	sub := request(admissionv1.Update, object)
	sub.SubResource = "status"
	for _, row := range []struct {
		name    string
		req     *admissionv1.AdmissionRequest
		patched bool
	}{
		{"create", request(admissionv1.Create, object), true},
		{"update", request(admissionv1.Update, object), true},
		{"delete", request(admissionv1.Delete, object), false},
		{"connect", request(admissionv1.Connect, object), false},
		{"status", sub, false},
		{"others", request(admissionv1.Create, `{"kind":"Pod"}`), false},
		{"nothing", nil, false},
	} {
		res := d.Review(row.req)
		require.True(t, res.Allowed, row.name)
		require.Equal(t, row.patched, res.Patch != nil, row.name)
		require.Empty(t, res.Warnings, row.name)
		if row.req != nil {
			require.Equal(t, row.req.UID, res.UID, row.name)
		}
		if row.patched {
			require.Equal(t, admissionv1.PatchTypeJSONPatch, *res.PatchType, row.name)
			var patch []defaulting.Operation
			require.NoError(t, json.Unmarshal(res.Patch, &patch), row.name)
			honest(t, d, []byte(object), patch)
		} else {
			require.Nil(t, res.PatchType, row.name)
		}
	}
}

func TestReviewOfWhatIsNoObject(t *testing.T) {
	res := defaulter(t).Review(request(admissionv1.Create, `[`))
	require.True(t, res.Allowed)
	require.Nil(t, res.Patch)
	require.Equal(t, []string{"no defaults were added: defaulting: the object: unexpected EOF"}, res.Warnings)
}

func TestReviewHasFewWarnings(t *testing.T) {
	triggers := strings.TrimSuffix(strings.Repeat(`{"type":"external","metadata":{"scalerName":"keda-kaito-scaler"}},`, 30), ",")
	res := defaulter(t).Review(request(admissionv1.Create, scaledObject(`{"triggers":[`+triggers+`]}`)))
	require.Len(t, res.Warnings, defaulting.MaxWarnings)
	require.Equal(t, "spec.triggers[18].metadata.threshold: is required in mode metric", res.Warnings[18])
	require.Equal(t, "and 11 more warnings", res.Warnings[19])
}
