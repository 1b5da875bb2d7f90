package policyfile

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// configs are the configurations whose every field can be in a file.
func configs() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[realtime.Config](), reflect.TypeFor[proportional.Config](), reflect.TypeFor[saturation.SingleConfig](),
		reflect.TypeFor[cronscale.Config](), reflect.TypeFor[staticBody](),
		reflect.TypeFor[scaling.Bounds](), reflect.TypeFor[scaling.Stabilization](), reflect.TypeFor[scaling.RateLimits](),
	}
}

// walk calls visit for every exported field that is no struct or list of them, with its place in v. It does not know
// of names in files, and so sees fields that the codec could have forgotten.
func walk(v reflect.Value, path string, visit func(path string, v reflect.Value)) {
	switch {
	case v.Type() == reflect.TypeFor[scaling.Bounds]() && path != "":
		return // of the policy, not of the algorithm
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				walk(v.Field(i), path+"."+f.Name, visit)
			}
		}
	case v.Kind() == reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			walk(v.Index(i), path+"[]", visit)
		}
	default:
		visit(path, v)
	}
}

func text(t require.TestingT, v reflect.Value) string {
	n, err := encode(v)
	require.NoError(t, err)
	data, err := yaml.Marshal(n)
	require.NoError(t, err)
	return string(data)
}

func back(t require.TestingT, data string, typ reflect.Type) any {
	r := &reader{file: "f.yaml", lines: map[string]int{}, failed: map[string]bool{}}
	root := r.document([]byte(data))
	v := reflect.New(typ).Elem()
	if root != nil {
		r.structure(root, v, "config")
	}
	require.NoError(t, r.err())
	return v.Interface()
}

// TestEveryFieldIsInTheFile sets one field after the other and finds it again behind the file: one that is added to a
// configuration and that the codec does not know is found here.
func TestEveryFieldIsInTheFile(t *testing.T) {
	for _, typ := range configs() {
		var paths []string
		walk(reflect.New(typ).Elem(), "", func(path string, _ reflect.Value) { paths = append(paths, path) })
		require.NotEmpty(t, paths)
		for _, path := range paths {
			v := reflect.New(typ).Elem()
			walk(v, "", func(p string, field reflect.Value) {
				if p == path {
					set(t, field)
				}
			})
			require.Equal(t, v.Interface(), back(t, text(t, v), typ), "%s%s", typ, path)
		}
	}
}

// set gives a field a value that is not its zero.
func set(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int8:
		v.SetInt(1)
	case reflect.Int32, reflect.Int64:
		v.SetInt(77)
	case reflect.Float64:
		v.SetFloat(0.7)
	default:
		t.Fatalf("a %s cannot be in a file", v.Type())
	}
}

// TestPropCodec writes configurations with anything in them, valid or not, and reads them back.
func TestPropCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(configs()).Draw(t, "type")
		v := reflect.New(typ).Elem()
		walk(v, "", func(path string, field reflect.Value) {
			switch field.Kind() {
			case reflect.String:
				field.SetString(rapid.String().Draw(t, path))
			case reflect.Bool:
				field.SetBool(rapid.Bool().Draw(t, path))
			case reflect.Int8:
				field.SetInt(rapid.Int64Range(0, int64(len(choices(field.Type()))-1)).Draw(t, path))
			case reflect.Int32:
				field.SetInt(int64(rapid.Int32().Draw(t, path)))
			case reflect.Int64:
				field.SetInt(rapid.Int64().Draw(t, path))
			case reflect.Float64:
				field.SetFloat(rapid.Float64().Draw(t, path))
			default:
				t.Fatalf("a %s cannot be in a file", field.Type())
			}
		})
		require.Equal(t, v.Interface(), back(t, text(t, v), typ))
	})
}

// TestChoices has every name of every enum.
func TestChoices(t *testing.T) {
	for want, typ := range map[string]reflect.Type{
		"Both, UpOnly or DownVeto":    reflect.TypeFor[realtime.Role](),
		"Any or PerDirection":         reflect.TypeFor[realtime.CooldownScope](),
		"PerPod, Total or Average":    reflect.TypeFor[proportional.Measure](),
		"HoldLast, Match or InWindow": reflect.TypeFor[cronscale.Mode](),
		"Default or Literal":          reflect.TypeFor[saturation.Mode](),
		"One or Deficit":              reflect.TypeFor[saturation.StepRule](),
		"Max, Min or Disabled":        reflect.TypeFor[scaling.Select](),
	} {
		require.True(t, enum(typ))
		require.Equal(t, want, oneOf(choices(typ)))
	}
}

// TestDurations have no zeros at their end, and are read back.
func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 90 * time.Second: "1m30s", 5 * time.Minute: "5m", 10 * time.Minute: "10m", time.Hour: "1h",
		20 * time.Hour: "20h", time.Hour + time.Second: "1h0m1s", time.Millisecond: "1ms", -5 * time.Minute: "-5m", 100 * time.Minute: "1h40m",
	} {
		require.Equal(t, want, durationText(d))
		got, err := time.ParseDuration(want)
		require.NoError(t, err)
		require.Equal(t, d, got)
	}
}

// TestUnknownKind tells that a kind of field is not known to the codec.
func TestUnknownKind(t *testing.T) {
	type config struct{ Ratio complex128 }
	_, err := encode(reflect.ValueOf(config{}))
	require.EqualError(t, err, "ratio: complex128 cannot be given in a file")
	r := &reader{file: "f.yaml", lines: map[string]int{}, failed: map[string]bool{}}
	var c config
	r.structure(r.document([]byte("ratio: 1")), reflect.ValueOf(&c).Elem(), "")
	require.EqualError(t, r.err(), "f.yaml:1: ratio: 1: cannot be given in a file")
}

// TestSampleHasEveryField looks for the name of each field in the sample.
func TestSampleHasEveryField(t *testing.T) {
	for _, typ := range configs() {
		for _, m := range members(typ) {
			require.Contains(t, Example(), m.name+":", fmt.Sprint(typ))
		}
	}
	for _, algorithm := range algorithms() {
		require.Contains(t, Example(), " "+algorithm+":")
		for _, profile := range profiles(algorithm) {
			require.Contains(t, strings.ReplaceAll(Example(), ".", ","), " "+profile)
		}
	}
}
