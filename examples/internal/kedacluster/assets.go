package kedacluster

import (
	"errors"
	"path/filepath"

	"github.com/inferscale/inferscale/examples/internal/cluster"
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
	return cluster.Find(AssetsVariable, filepath.Join("keda", Version), ErrNoAssets, []string{operatorProgram, adapterProgram}, crdFolder, rbacFolder)
}
