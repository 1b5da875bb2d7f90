package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// InNamespace returns YAML documents with those objects that have a namespace and name none put into the given one, as
// the field namespace of a kustomization does. Which kinds have none is known of those that manifests of controllers
// have: Namespace, CustomResourceDefinition, what begins with Cluster, and webhook configurations.
func InNamespace(manifests []byte, namespace string) ([]byte, error) {
	var all [][]byte
	err := each(manifests, func(object *unstructured.Unstructured) error {
		kind := object.GetKind()
		global := kind == "Namespace" || kind == "CustomResourceDefinition" || strings.HasPrefix(kind, "Cluster") ||
			strings.HasSuffix(kind, "WebhookConfiguration")
		if !global && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		text, err := sigsyaml.Marshal(object.Object)
		all = append(all, text)
		return err
	})
	return bytes.Join(all, []byte("---\n")), err
}

// each calls do with the objects of YAML documents, until one fails.
func each(manifests []byte, do func(*unstructured.Unstructured) error) error {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for n := 1; ; n++ {
		var object unstructured.Unstructured
		if err := documents.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
		if len(object.Object) == 0 {
			continue // only comments
		}
		if err := do(&object); err != nil {
			return err
		}
	}
}
