package defaulting_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
)

func objects(f *testing.F) [][]byte {
	f.Helper()
	paths, err := filepath.Glob("testdata/*.yaml")
	require.NoError(f, err)
	var all [][]byte
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		object, err := yaml.YAMLToJSON(text)
		require.NoError(f, err)
		all = append(all, object)
	}
	return all
}

func FuzzDefault(f *testing.F) {
	for _, object := range objects(f) {
		f.Add(object)
	}
	f.Add([]byte(scaledObject(`{"triggers":[` + ours + `],"triggers":[` + ours + `,null]}`)))
	d := defaulter(f, func(c *defaulting.Config) { c.Known = func(string) bool { return false } })
	f.Fuzz(func(t *testing.T, object []byte) {
		patch, warnings, err := d.Default(object)
		if err != nil {
			require.Nil(t, patch)
			require.Nil(t, warnings)
			return
		}
		honest(t, d, object, patch)
	})
}

func FuzzServeHTTP(f *testing.F) {
	for _, object := range objects(f) {
		f.Add(http.MethodPost, "application/json", review(f, string(object)))
	}
	d := defaulter(f)
	f.Fuzz(func(t *testing.T, method, contentType, body string) {
		if _, err := http.NewRequest(method, "/", nil); err != nil {
			return
		}
		w := serve(d, method, contentType, body)
		if w.Code != http.StatusOK {
			require.GreaterOrEqual(t, w.Code, 400)
			require.Less(t, w.Code, 500)
			return
		}
		var asked, answer admissionv1.AdmissionReview
		require.NoError(t, json.Unmarshal([]byte(body), &asked))
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
		require.True(t, answer.Response.Allowed)
		if answer.Response.Patch != nil {
			var patch []defaulting.Operation
			require.NoError(t, json.Unmarshal(answer.Response.Patch, &patch))
			honest(t, d, asked.Request.Object.Raw, patch)
		}
	})
}
