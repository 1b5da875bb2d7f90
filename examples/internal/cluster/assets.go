package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Version is the version of Kubernetes that internal/controlplane/build builds.
const Version = "v1.37.2"

// AssetsVariable names the environment variable with the folder of the programs, for a place other than
// inferscale/controlplane/VERSION in the user's cache folder. The value "none" says that there are none on purpose:
// tests skip, even where they must not skip otherwise.
const AssetsVariable = "INFERSCALE_CONTROLPLANE"

// The programs of a control plane.
const (
	etcdProgram       = "etcd"
	apiServerProgram  = "kube-apiserver"
	controllerProgram = "kube-controller-manager"
)

// ErrNoAssets says that the control plane was not built on this machine; the message has the command that does it.
var ErrNoAssets = errors.New("no control plane: run internal/controlplane/build from the root of the repository")

// Assets returns the folder with etcd, kube-apiserver and kube-controller-manager, or [ErrNoAssets].
func Assets() (string, error) {
	return Find(AssetsVariable, filepath.Join("controlplane", Version), ErrNoAssets, []string{etcdProgram, apiServerProgram, controllerProgram})
}

// Find returns the folder that an environment variable names or, if that is empty, the one at inferscale/place in the
// user's cache folder. It must have the programs and the folders; else the error is missing, with where it looked.
func Find(variable, place string, missing error, programs []string, folders ...string) (string, error) {
	dir := os.Getenv(variable)
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w (%w)", missing, err)
		}
		dir = filepath.Join(cache, "inferscale", place)
	}
	for i, name := range slices.Concat(programs, folders) {
		info, err := os.Stat(filepath.Join(dir, name))
		isProgram := err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
		isFolder := err == nil && info.IsDir()
		if i < len(programs) && !isProgram || i >= len(programs) && !isFolder {
			return "", fmt.Errorf("%w (looked in %s for %s)", missing, dir, name)
		}
	}
	return dir, nil
}
