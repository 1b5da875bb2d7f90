package defaulting_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
)

func defaulter(tb testing.TB, change ...func(*defaulting.Config)) *defaulting.Defaulter {
	tb.Helper()
	c := defaulting.Default()
	for _, f := range change {
		f(&c)
	}
	d, err := defaulting.New(c)
	require.NoError(tb, err)
	return d
}

// tb is what a test and a rapid property have in common.
type tb interface {
	require.TestingT
	Helper()
}

// apply does to an object what an API server does: it uses the same library.
func apply(t tb, object []byte, patch []defaulting.Operation) []byte {
	t.Helper()
	if len(patch) == 0 {
		return object
	}
	raw, err := json.Marshal(patch)
	require.NoError(t, err)
	decoded, err := jsonpatch.DecodePatch(raw)
	require.NoError(t, err)
	patched, err := decoded.Apply(object)
	require.NoError(t, err)
	return patched
}

// parsed returns a JSON value with its numbers as written.
func parsed(t tb, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v))
	return v
}

// survives says whether all that is in was is also in is, apart from nulls.
func survives(was, is any) bool {
	switch was := was.(type) {
	case nil:
		return true
	case map[string]any:
		is, ok := is.(map[string]any)
		for key, v := range was {
			w, there := is[key]
			ok = ok && there && survives(v, w)
		}
		return ok
	case []any:
		is, ok := is.([]any)
		ok = ok && len(is) == len(was)
		for i := 0; ok && i < len(was); i++ {
			ok = survives(was[i], is[i])
		}
		return ok
	default:
		return was == is
	}
}

// honest checks what holds of every object that Default takes.
func honest(t tb, d *defaulting.Defaulter, object []byte, patch []defaulting.Operation) {
	t.Helper()
	patched := apply(t, object, patch)
	for _, op := range patch {
		require.Equal(t, "add", op.Op)
		require.NotNil(t, op.Value)
	}
	require.True(t, survives(parsed(t, object), parsed(t, patched)), "something was overridden:\n%s\n%s", object, patched)
	again, _, err := d.Default(patched)
	require.NoError(t, err)
	require.Empty(t, again, "a second pass adds to %s", patched)
}

func sorted[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
