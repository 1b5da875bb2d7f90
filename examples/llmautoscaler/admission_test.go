package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s/api/crd"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
)

// An admission judges objects as an API server does that has the CustomResourceDefinition: it fills in defaults, then
// checks schema, lists and rules. It is made of the API server's own packages.
type admission struct {
	schema    *structuralschema.Structural
	validator schemavalidation.SchemaValidator
	rules     *cel.Validator
}

func newAdmission(tb testing.TB) *admission {
	tb.Helper()
	return admissionOf(tb, crd.LLMAutoScaler())
}

// admissions are those of the definitions, which to compile takes long.
var admissions = map[string]*admission{}

// admissionOf returns that of a definition.
func admissionOf(tb testing.TB, definition string) *admission {
	tb.Helper()
	if a, made := admissions[definition]; made {
		return a
	}
	var v1 apiextensionsv1.CustomResourceDefinition
	require.NoError(tb, yaml.UnmarshalStrict([]byte(definition), &v1))
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)
	v1.Status.StoredVersions = []string{v1.Spec.Versions[0].Name}
	var internal apiextensions.CustomResourceDefinition
	require.NoError(tb, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &internal, nil))
	require.NoError(tb, crdvalidation.ValidateCustomResourceDefinition(tb.Context(), &internal).ToAggregate())
	props := internal.Spec.Validation
	if props == nil {
		props = internal.Spec.Versions[0].Schema
	}
	schema, err := structuralschema.NewStructural(props.OpenAPIV3Schema)
	require.NoError(tb, err)
	validator, _, err := schemavalidation.NewSchemaValidator(props.OpenAPIV3Schema)
	require.NoError(tb, err)
	a := &admission{schema: schema, validator: validator, rules: cel.NewValidator(schema, true, celconfig.PerCallLimit)}
	admissions[definition] = a
	return a
}

// admit returns the object as it would be stored, or why it is refused. What only rules refuse is returned too.
func (a *admission) admit(tb testing.TB, text string) (*v1alpha1.LLMAutoScaler, error) {
	tb.Helper()
	object := map[string]any{}
	require.NoError(tb, yaml.Unmarshal([]byte(text), &object))
	object = runtime.DeepCopyJSON(integers(object).(map[string]any))
	shaped, errs := a.judge(tb, object)
	if !shaped {
		return nil, errs.ToAggregate()
	}
	stored := &v1alpha1.LLMAutoScaler{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, stored, true); len(errs) == 0 {
		require.NoError(tb, err)
	}
	return stored, errs.ToAggregate()
}

// judge fills in defaults, and says what is wrong, and whether it has at least the shape.
func (a *admission) judge(tb testing.TB, object map[string]any) (shaped bool, errs field.ErrorList) {
	tb.Helper()
	defaulting.Default(object, a.schema)
	errs = schemavalidation.ValidateCustomResource(nil, object, a.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, a.schema, object)...)
	if len(errs) > 0 { // an API server checks no rules of what has not even the shape
		return false, errs
	}
	errs, _ = a.rules.Validate(tb.Context(), nil, a.schema, object, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range errs {
		err.BadValue = field.OmitValueType{} // the type in older versions, the whole value in newer ones
	}
	return true, errs
}

// integers makes int64 of what YAML reads as float64, as the API server's own decoder does.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return int64(v)
		}
	}
	return v
}
