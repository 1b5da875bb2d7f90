package defaulting_test

import (
	"encoding/json"
	"fmt"

	"github.com/inferscale/inferscale/adapters/keda/defaulting"
)

func Example() {
	d, err := defaulting.New(defaulting.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	patch, warnings, err := d.Default([]byte(`{
		"apiVersion": "keda.sh/v1alpha1",
		"kind": "ScaledObject",
		"spec": {
			"scaleTargetRef": {"name": "my-vllm"},
			"minReplicaCount": 2,
			"advanced": {"horizontalPodAutoscalerConfig": {"behavior": {
				"scaleUp": {"stabilizationWindowSeconds": 60, "policies": []},
				"scaleDown": {"selectPolicy": "Disabled"}
			}}},
			"triggers": [{
				"type": "external",
				"metadata": {"scalerName": "keda-kaito-scaler", "metricPort": "8000", "metricPorotocol": "https"},
				"authenticationRef": {"name": "mine"}
			}]
		}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range warnings {
		fmt.Println("Warning:", w)
	}
	for _, op := range patch {
		value, _ := json.Marshal(op.Value)
		fmt.Printf("%s %s\n    %s\n", op.Op, op.Path, value)
	}
	// Output:
	// Warning: spec.triggers[0].metadata.metricPorotocol: is read as metricProtocol: write that
	// Warning: spec.triggers[0].metadata.threshold: is required in mode metric
	// add /spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleDown/policies
	//     [{"periodSeconds":600,"type":"Pods","value":1}]
	// add /spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleDown/stabilizationWindowSeconds
	//     300
	// add /spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleDown/tolerance
	//     "500m"
	// add /spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleUp/selectPolicy
	//     "Max"
	// add /spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleUp/tolerance
	//     "100m"
	// add /spec/triggers/0/metadata/metricName
	//     "vllm:num_requests_waiting"
	// add /spec/triggers/0/metadata/metricPath
	//     "/metrics"
	// add /spec/triggers/0/metadata/metricType
	//     "AverageValue"
	// add /spec/triggers/0/metadata/scalerAddress
	//     "keda-kaito-scaler.keda.svc.cluster.local:10450"
	// add /spec/triggers/0/metadata/scrapeTimeout
	//     "5"
}
