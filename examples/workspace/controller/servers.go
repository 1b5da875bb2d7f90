package controller

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/estimate"
)

// containerName is that of the inference server in its pod, and portName that of its port.
const (
	containerName = "inference"
	portName      = "http"
	defaultPort   = 8000
)

// Servers knows what to run for a workspace. The tables are those of the estimator.
type Servers struct {
	// Instances are the instance types that are known, by name.
	Instances map[string]estimate.Instance
	// Presets are the models that are known, by name.
	Presets map[string]estimate.Preset
	// PresetImage is the image that serves presets: vLLM's, or one with the same arguments.
	PresetImage string
}

// Deployment returns what the Deployment of a workspace is to be. An error names the field that it cannot be made from.
func (s Servers) Deployment(w *v1alpha1.Workspace, p Plan) (*appsv1ac.DeploymentApplyConfiguration, error) {
	container, err := s.container(w)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{v1alpha1.NameLabel: w.Name}
	pod := corev1ac.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithSecurityContext(corev1ac.PodSecurityContext().
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(container)
	if affinity := affinity(w.Spec.Resource); affinity != nil {
		pod.WithAffinity(affinity)
	}
	return appsv1ac.Deployment(w.Name, w.Namespace).
		WithLabels(labels).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(v1alpha1.GroupVersion().String()).WithKind(v1alpha1.Kind).
			WithName(w.Name).WithUID(w.UID).WithController(true)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(p.Replicas).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			// There are nodes for the replicas and no others: a new pod has no place before an old one leaves.
			WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType).
				WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
					WithMaxSurge(intstr.FromInt32(0)).WithMaxUnavailable(intstr.FromInt32(1)))).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(pod))), nil
}

// container returns the inference server of a workspace, which has all GPUs of a node.
func (s Servers) container(w *v1alpha1.Workspace) (*corev1ac.ContainerApplyConfiguration, error) {
	instance, ok := s.Instances[w.Spec.Resource.InstanceType]
	if !ok {
		return nil, fmt.Errorf("spec.resource.instanceType: %q is not known to the controller", w.Spec.Resource.InstanceType)
	}
	gpus := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(instance.GPUs), resource.DecimalSI)}
	out := corev1ac.Container().
		WithName(containerName).
		WithResources(corev1ac.ResourceRequirements().WithLimits(gpus).WithRequests(gpus)).
		WithReadinessProbe(corev1ac.Probe().
			WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/health").WithPort(intstr.FromString(portName)))).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
	port := int32(defaultPort)
	inference := w.Spec.Inference
	switch {
	case inference.Template != nil:
		out.WithImage(inference.Template.Image).WithArgs(inference.Template.Args...)
		port = cmp.Or(inference.Template.Port, port)
	case inference.Preset != nil:
		preset, ok := s.Presets[inference.Preset.Name]
		if !ok {
			return nil, fmt.Errorf("spec.inference.preset.name: %q is not known to the controller", inference.Preset.Name)
		}
		tensor, pipeline := preset.Parallel(instance.GPUs)
		out.WithImage(s.PresetImage).WithArgs(
			"--model="+preset.Model,
			"--port="+strconv.Itoa(defaultPort),
			"--max-model-len="+strconv.Itoa(int(preset.Context(inference.Preset))),
			"--tensor-parallel-size="+strconv.Itoa(int(tensor)),
		)
		if pipeline > 1 {
			out.WithArgs("--pipeline-parallel-size=" + strconv.Itoa(int(pipeline)))
		}
		if secret := inference.Preset.AccessSecret; secret != "" {
			out.WithEnv(corev1ac.EnvVar().WithName("HF_TOKEN").WithValueFrom(corev1ac.EnvVarSource().
				WithSecretKeyRef(corev1ac.SecretKeySelector().WithName(secret).WithKey("HF_TOKEN"))))
		}
	default:
		return nil, errors.New("spec.inference: neither preset nor template")
	}
	return out.WithPorts(corev1ac.ContainerPort().WithName(portName).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)), nil
}

// affinity returns where the pods may run and where they would rather. Nil: anywhere.
func affinity(r v1alpha1.ResourceSpec) *corev1ac.AffinityApplyConfiguration {
	required := requirements(r.LabelSelector)
	if len(required)+len(r.PreferredNodes) == 0 {
		return nil
	}
	nodes := corev1ac.NodeAffinity()
	if len(required) > 0 {
		nodes.WithRequiredDuringSchedulingIgnoredDuringExecution(
			corev1ac.NodeSelector().WithNodeSelectorTerms(corev1ac.NodeSelectorTerm().WithMatchExpressions(required...)))
	}
	if len(r.PreferredNodes) > 0 {
		nodes.WithPreferredDuringSchedulingIgnoredDuringExecution(corev1ac.PreferredSchedulingTerm().WithWeight(100).
			WithPreference(corev1ac.NodeSelectorTerm().WithMatchExpressions(corev1ac.NodeSelectorRequirement().
				WithKey(corev1.LabelHostname).WithOperator(corev1.NodeSelectorOpIn).WithValues(r.PreferredNodes...))))
	}
	return corev1ac.Affinity().WithNodeAffinity(nodes)
}

// requirements returns a label selector in the words of a node selector, in the order of the keys.
func requirements(s *metav1.LabelSelector) []*corev1ac.NodeSelectorRequirementApplyConfiguration {
	if s == nil {
		return nil
	}
	var all []*corev1ac.NodeSelectorRequirementApplyConfiguration
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		all = append(all, corev1ac.NodeSelectorRequirement().
			WithKey(key).WithOperator(corev1.NodeSelectorOpIn).WithValues(s.MatchLabels[key]))
	}
	for _, e := range s.MatchExpressions {
		all = append(all, corev1ac.NodeSelectorRequirement().
			WithKey(e.Key).WithOperator(corev1.NodeSelectorOperator(e.Operator)).WithValues(e.Values...))
	}
	return all
}
