package kedacluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Version is the version of KEDA that internal/controlplane/keda/build builds.
const Version = "v2.21.0"

// AssetsVariable names the environment variable with the folder of the programs, for a place other than
// inferscale/keda/VERSION in the user's cache folder. The value "none" says that there are none on purpose: tests skip,
// even where they must not skip otherwise.
const AssetsVariable = "INFERSCALE_KEDA"

// DemandVariable names the environment variable that, set to 1, makes tests fail instead of skip without the programs.
const DemandVariable = "INFERSCALE_KEDA_E2E"

// The programs of KEDA, and the folders beside them.
const (
	operatorProgram = "keda-operator"
	adapterProgram  = "keda-adapter"
	crdFolder       = "crd"
	rbacFolder      = "rbac"
)

// ErrNoAssets says that KEDA was not built on this machine; the message has the command that does it.
var ErrNoAssets = errors.New("no KEDA: run internal/controlplane/keda/build from the root of the repository")

// Assets returns the folder with keda-operator, keda-adapter and the manifests, or [ErrNoAssets].
func Assets() (string, error) {
	dir := os.Getenv(AssetsVariable)
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w (%w)", ErrNoAssets, err)
		}
		dir = filepath.Join(cache, "inferscale", "keda", Version)
	}
	for _, name := range []string{operatorProgram, adapterProgram} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			return "", fmt.Errorf("%w (looked in %s for %s)", ErrNoAssets, dir, name)
		}
	}
	for _, name := range []string{crdFolder, rbacFolder} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.IsDir() {
			return "", fmt.Errorf("%w (looked in %s for %s)", ErrNoAssets, dir, name)
		}
	}
	return dir, nil
}
