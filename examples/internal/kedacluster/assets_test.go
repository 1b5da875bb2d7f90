package kedacluster

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersionIsThatOfTheModule(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "internal", "controlplane", "keda", "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, strings.Join(strings.Fields(string(text)), " "), " github.com/kedacore/keda/v2 "+Version+" ")
}

// A verdict records how a test would end.
type verdict struct {
	testing.TB
	skipped, failed any
}

func (v *verdict) Skip(args ...any)  { v.skipped = args[0]; runtime.Goexit() }
func (v *verdict) Fatal(args ...any) { v.failed = args[0]; runtime.Goexit() }

func TestWithoutAssets(t *testing.T) {
	for _, step := range []struct {
		demand, assets string
		fails          bool
	}{
		{demand: "", assets: t.TempDir()},
		{demand: "1", assets: t.TempDir(), fails: true},
		{demand: "1", assets: "none"},
	} {
		t.Setenv(DemandVariable, step.demand)
		t.Setenv(AssetsVariable, step.assets)
		v := &verdict{TB: t}
		done := make(chan struct{})
		go func() { defer close(done); ForTest(v, nil, Options{}) }()
		<-done
		said := v.skipped
		if step.fails {
			said = v.failed
		}
		err, ok := said.(error)
		require.True(t, ok, "%+v: %+v", step, v)
		require.ErrorIs(t, err, ErrNoAssets)
		assert.ErrorContains(t, err, "internal/controlplane/keda/build")
	}
}
