package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names under which an API server knows the Workspace.
const (
	Group    = "workspace.inferscale.io"
	Version  = "v1alpha1"
	Kind     = "Workspace"
	Resource = "workspaces"
)

// GroupVersion returns the group and version of this package.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme makes the types of this package known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &Workspace{}, &WorkspaceList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
