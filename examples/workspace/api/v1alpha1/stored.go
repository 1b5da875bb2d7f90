package v1alpha1

import (
	"errors"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
)

// UnmarshalJSON reads what can be read of a workspace. One that an older definition let in, and that this type cannot
// hold, is so an object with a reason, and not the end of every list and watch of the cluster's workspaces.
func (w *Workspace) UnmarshalJSON(data []byte) error {
	type plain Workspace
	read, spec, status, err := stored.Unmarshal[plain](data)
	*w = Workspace(read)
	if why := errors.Join(spec, status); why != nil {
		w.Unreadable = why.Error()
	}
	return err
}
