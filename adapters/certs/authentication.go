package certs

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	// DefaultAuthentication is the ClusterTriggerAuthentication that ScaledObjects name in authenticationRef.
	DefaultAuthentication = "keda-kaito-creds"
	// FieldManager is the field manager with which KeepAuthentication applies.
	FieldManager = "inferscale-external-scaler"

	roleAuthentication = "authentication"
)

// authentications returns the resource of ClusterTriggerAuthentications.
func authentications() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "clustertriggerauthentications"}
}

// Authentication returns the ClusterTriggerAuthentication that makes KEDA read ca.crt, tls.crt and tls.key of a Secret. KEDA
// looks for the Secret in its own namespace, or in the one that its variable KEDA_CLUSTER_OBJECT_NAMESPACE names.
func Authentication(name, secretName string) *unstructured.Unstructured {
	ref := func(parameter, key string) any {
		return map[string]any{"parameter": parameter, "name": secretName, "key": key}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1",
		"kind":       "ClusterTriggerAuthentication",
		"metadata":   map[string]any{"name": name, "labels": map[string]any{Label: roleAuthentication}},
		"spec": map[string]any{"secretTargetRef": []any{
			ref("caCert", keyCA), ref("tlsClientCert", keyTLSCert), ref("tlsClientKey", keyTLSKey),
		}},
	}}
}

// KeepAuthentication applies Authentication(name, secretName) with a server-side apply if the object is missing or differs.
// It returns whether it did. Empty names mean DefaultAuthentication and DefaultSecret.
//
// An existing object with the right content may belong to anybody. One that differs must have the label Label; otherwise the
// error is a *SecretError with ErrForeign, and nothing is written. Fields of other managers, such as annotations, are not
// changed. In a cluster without KEDA's definitions, apierrors.IsNotFound is true for the error.
func KeepAuthentication(ctx context.Context, c dynamic.Interface, name, secretName string) (bool, error) {
	name, secretName = cmp.Or(name, DefaultAuthentication), cmp.Or(secretName, DefaultSecret)
	where := "ClusterTriggerAuthentication " + name
	want := Authentication(name, secretName)
	have, err := c.Resource(authentications()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return false, fmt.Errorf("cannot read %s: %w", where, err)
	case equality.Semantic.DeepEqual(have.Object["spec"], want.Object["spec"]):
		return false, nil
	case have.GetLabels()[Label] != roleAuthentication:
		return false, &SecretError{Secret: where, Key: "spec", Rule: "must be that of Authentication, or have the label " + Label + ": " + roleAuthentication, Err: ErrForeign}
	}
	// The list in the object is a single field for the API server. Force takes it over from another manager that has edited
	// it.
	if _, err := c.Resource(authentications()).Apply(ctx, name, want, metav1.ApplyOptions{FieldManager: FieldManager, Force: true}); err != nil {
		return false, fmt.Errorf("cannot apply %s: %w", where, err)
	}
	return true, nil
}
