package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Version is the version of Kubernetes that internal/controlplane/build builds.
const Version = "v1.35.4"

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
	dir := os.Getenv(AssetsVariable)
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w (%w)", ErrNoAssets, err)
		}
		dir = filepath.Join(cache, "inferscale", "controlplane", Version)
	}
	for _, name := range []string{etcdProgram, apiServerProgram, controllerProgram} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			return "", fmt.Errorf("%w (looked in %s for %s)", ErrNoAssets, dir, name)
		}
	}
	return dir, nil
}
