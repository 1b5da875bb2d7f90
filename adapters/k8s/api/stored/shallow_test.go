package stored_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
)

// answered returns what a client reads of an answer with this body.
func answered(t *testing.T, transport http.RoundTripper, media, body string) []byte {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	client := http.Client{Transport: transport}
	answer, err := client.Get(server.URL) //nolint:noctx // the server is of this test
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return data
}

// deep returns an LLMAutoScaler that is nested so deep.
func deep(name string, depth int) string {
	within := strings.Repeat("[", depth-5) + strings.Repeat("]", depth-5)
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"maxReplicas":3,"shadow":[{"name":"a","scaler":{"a":%s}}]}}`, name, within)
}

// TestRegressionADeepObjectEndsNoList: an API server admits an object that is nested 9,999 deep. One in any namespace ended every
// list of LLMAutoScalers, without which a controller makes no rounds.
func TestRegressionADeepObjectEndsNoList(t *testing.T) {
	for _, depth := range []int{9_998, 9_999, 10_000} {
		text := `{"items":[` + deep("a", depth) + `,` + deep("b", 50) + `]}`
		var list stored.LLMAutoScalerList
		if depth > 9_998 {
			plain := answered(t, http.DefaultTransport, "application/json", text)
			require.ErrorContains(t, json.Unmarshal(plain, &list), "exceeded max depth")
		}
		data := answered(t, stored.Shallow(http.DefaultTransport), "application/json; charset=utf-8", text)
		require.NoError(t, json.Unmarshal(data, &list))
		require.Len(t, list.Items, 2)
		for i, name := range []string{"a", "b"} {
			require.NoError(t, list.Items[i].SpecErr)
			require.Equal(t, name, list.Items[i].Name)
			require.Equal(t, int32(3), list.Items[i].Spec.MaxReplicas)
		}
		require.True(t, strings.HasSuffix(string(data), ","+deep("b", 50)+"]}"))
	}
}

// TestShallow empties what is at the depth, and nothing else.
func TestShallow(t *testing.T) {
	nested := func(within string) string {
		return strings.Repeat("[", stored.MaxDepth-1) + within + strings.Repeat("]", stored.MaxDepth-1)
	}
	through := stored.Shallow(http.DefaultTransport)
	for _, tt := range []struct{ body, want string }{
		{``, ``},
		{`{"type":"ADDED"}` + "\n" + `{"a":"]}\"[{\\"}`, `{"type":"ADDED"}` + "\n" + `{"a":"]}\"[{\\"}`},
		{nested(`1,"[",{},[]`), nested(`1,"[",{},[]`)},
		{nested(`{"a":[1]},[2,[3],"]\"]"],4`), nested(`{},[],4`)},
		{nested(`[{"a":"\\"}]`) + "\n{}", nested(`[]`) + "\n{}"},
		{nested(`[` + strings.Repeat(`"x",`, 100_000) + `1]`), nested(`[]`)},
	} {
		require.Equal(t, tt.want, string(answered(t, through, "application/json", tt.body)))
		require.Equal(t, tt.body, string(answered(t, through, "text/plain", tt.body)))
	}
}
