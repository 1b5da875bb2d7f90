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
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		var object unstructured.Unstructured
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return bytes.Join(all, []byte("---\n")), nil
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", len(all)+1, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		kind := object.GetKind()
		global := kind == "Namespace" || kind == "CustomResourceDefinition" || strings.HasPrefix(kind, "Cluster") ||
			strings.HasSuffix(kind, "WebhookConfiguration")
		if !global && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		text, err := sigsyaml.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
}
