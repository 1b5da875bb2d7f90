package defaulting_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func review(tb testing.TB, object string) string {
	tb.Helper()
	raw, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  request(admissionv1.Create, object),
	})
	require.NoError(tb, err)
	return string(raw)
}

func serve(d *defaulting.Defaulter, method, contentType, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "/", strings.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	return w
}

func TestServeHTTP(t *testing.T) {
	d := defaulter(t)
	object := scaledObject(`{"triggers":[` + ours + `]}`)
	w := serve(d, http.MethodPost, "application/json; charset=utf-8", review(t, object))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Equal(t, metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, answer.TypeMeta)
	require.Nil(t, answer.Request)
	require.Equal(t, d.Review(request(admissionv1.Create, object)), answer.Response)
}

func TestServeHTTPOfOthers(t *testing.T) {
	d := defaulter(t)
	good := review(t, `{}`)
	for _, row := range []struct {
		method, contentType, body string
		want                      int
	}{
		{http.MethodGet, "application/json", good, http.StatusMethodNotAllowed},
		{http.MethodPost, "", good, http.StatusUnsupportedMediaType},
		{http.MethodPost, "application/yaml", good, http.StatusUnsupportedMediaType},
		{http.MethodPost, "application/json", ``, http.StatusBadRequest},
		{http.MethodPost, "application/json", `{}`, http.StatusBadRequest},
		{http.MethodPost, "application/json", strings.Replace(good, "/v1", "/v1beta1", 1), http.StatusBadRequest},
		{http.MethodPost, "application/json", strings.Replace(good, "AdmissionReview", "Other", 1), http.StatusBadRequest},
		{http.MethodPost, "application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, http.StatusBadRequest},
		{http.MethodPost, "application/json", strings.Repeat(" ", defaulting.MaxBody-len(good)) + good, http.StatusOK},
		{http.MethodPost, "application/json", strings.Repeat(" ", defaulting.MaxBody-len(good)+1) + good, http.StatusRequestEntityTooLarge},
	} {
		require.Equal(t, row.want, serve(d, row.method, row.contentType, row.body).Code, fmt.Sprintf("%s %s %.60s", row.method, row.contentType, row.body))
	}
}

// TestServeHTTPHasABound: whoever sends a lot at once is refused, and does not take the process its memory.
func TestServeHTTPHasABound(t *testing.T) {
	d := defaulter(t)
	good := review(t, `{}`)
	post := func() int { return serve(d, http.MethodPost, "application/json", good).Code }
	var done sync.WaitGroup
	var bodies []*io.PipeWriter
	for range defaulting.MaxPending / defaulting.MaxBody { // they do not say how long they are
		body, w := io.Pipe()
		bodies = append(bodies, w)
		done.Add(1)
		go func() {
			defer done.Done()
			req := httptest.NewRequest(http.MethodPost, "/", body)
			req.Header.Set("Content-Type", "application/json")
			d.ServeHTTP(httptest.NewRecorder(), req)
		}()
		_, err := w.Write([]byte(" ")) // it is read
		require.NoError(t, err)
	}
	require.Equal(t, http.StatusTooManyRequests, post())
	require.NoError(t, bodies[0].Close())
	require.Eventually(t, func() bool { return post() == http.StatusOK }, 10*time.Second, time.Millisecond)
	for _, body := range bodies {
		require.NoError(t, body.Close())
	}
	done.Wait()
	require.Equal(t, http.StatusOK, post())
}
