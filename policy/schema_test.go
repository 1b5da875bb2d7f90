package policy

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/scalingtest"
)

// A schema makes a JSON Schema of types, with the comments and markers that their sources have.
type schema struct {
	comments map[string]*ast.CommentGroup // by type, and by type and field
	defs     map[string]any
}

// TestSchema has schema.json as it is made of the types. UPDATE_GOLDEN=1 writes it.
func TestSchema(t *testing.T) {
	s := schema{comments: map[string]*ast.CommentGroup{}, defs: map[string]any{}}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			require.NoError(t, err)
			s.read(f)
		}
	}
	forms := []any{
		s.object(reflect.TypeFor[bare](), false), s.object(reflect.TypeFor[flat](), false), s.object(reflect.TypeFor[manifest](), true),
	}
	list := func(name string, entry map[string]any, least int) map[string]any {
		return map[string]any{
			"type": "object", "required": []string{name}, "additionalProperties": false,
			"properties": map[string]any{name: map[string]any{"type": "array", "minItems": least, "items": entry}},
		}
	}
	forms = append(forms, list("policies", map[string]any{"anyOf": forms[:2]}, 1), list("models", s.of(reflect.TypeFor[Model](), false), 0))
	data, err := json.MarshalIndent(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "inferscale policy document", "anyOf": forms, "$defs": s.defs,
	}, "", " ")
	require.NoError(t, err)
	scalingtest.Golden(t, "../schema.json", string(data)+"\n")
}

// TestSchemaHasTheSample looks for every key of the sample in the schema.
func TestSchemaHasTheSample(t *testing.T) {
	data, err := os.ReadFile("schema.json")
	require.NoError(t, err)
	var root yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(Example()), &root))
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 && c.Value != "model_name" {
				require.Contains(t, string(data), `"`+c.Value+`"`)
			}
			walk(c)
		}
	}
	walk(&root)
}

// TestSampleHasEveryField looks for the name of each field of a scaler in the sample.
func TestSampleHasEveryField(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] || typ == reflect.TypeFor[Decimal]() || typ == reflect.TypeFor[PortNumber]() {
			return
		}
		seen[typ] = true
		for _, m := range members(typ) {
			require.Contains(t, Example(), m.name+":", typ.String())
			walk(typ.FieldByIndex(m.index).Type)
		}
	}
	walk(reflect.TypeFor[Composite]())
}

func (s *schema) read(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			t := spec.(*ast.TypeSpec)
			doc := t.Doc
			if doc == nil {
				doc = g.Doc
			}
			s.comments[t.Name.Name] = doc
			if fields, ok := t.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						s.comments[t.Name.Name+"."+name.Name] = field.Doc
					}
				}
			}
		}
	}
}

// marked adds what a comment says: its text, and the rules of its markers.
func (s *schema) marked(to map[string]any, key string) map[string]any {
	group := s.comments[key]
	if group == nil {
		return to
	}
	if text := strings.Join(strings.Fields(before(group.Text())), " "); text != "" {
		to["description"] = text
	}
	names := map[string]string{"Minimum": "minimum", "Maximum": "maximum", "MaxItems": "maxItems", "MinItems": "minItems", "MaxLength": "maxLength", "MinLength": "minLength"}
	for _, c := range group.List {
		rule, found := strings.CutPrefix(c.Text, "// +kubebuilder:")
		name, value, has := strings.Cut(strings.TrimPrefix(rule, "validation:"), "=")
		switch {
		case !found || !has:
		case name == "Enum":
			to["enum"] = strings.Split(value, ";")
		case name == "Pattern":
			to["pattern"] = strings.Trim(value, "`")
		case rule == "default="+value && !strings.HasPrefix(value, "{"):
			to["default"] = value
			if n, err := strconv.Atoi(value); err == nil {
				to["default"] = n
			}
		case names[name] != "":
			n, err := strconv.Atoi(value)
			if err == nil && (name != "MinItems" || n > 0) {
				to[names[name]] = n
			}
		}
	}
	return to
}

// before leaves markers out of a text.
func before(text string) string {
	text, _, _ = strings.Cut(text, "\n+")
	return text
}

func (s *schema) of(t reflect.Type, strict bool) map[string]any {
	strict = strict && t != reflect.TypeFor[Shadow]()
	switch {
	case t.Kind() == reflect.Pointer:
		return s.of(t.Elem(), strict)
	case t == reflect.TypeFor[Decimal]():
		return map[string]any{"type": []string{"integer", "string"}, "pattern": decimalPattern, "minimum": 0}
	case t == reflect.TypeFor[PortNumber]():
		return map[string]any{"type": []string{"integer", "string"}, "pattern": portPattern, "minimum": 1, "maximum": 65535}
	case t == reflect.TypeFor[yaml.Node]():
		return map[string]any{"type": "object"}
	case t == reflect.TypeFor[ServerDocument]():
		return s.server()
	case t == reflect.TypeFor[NumberOrName]():
		return map[string]any{"type": []string{"integer", "string"}}
	case t == reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "string"}
	case t == reflect.TypeFor[Policy]():
		return map[string]any{"anyOf": []any{s.object(reflect.TypeFor[bare](), strict), s.object(reflect.TypeFor[flat](), strict)}}
	case t.Kind() == reflect.Struct:
		name := t.Name()
		if strict {
			name += "OfManifest"
		}
		if _, known := s.defs[name]; !known {
			s.defs[name] = true // for types that hold themselves
			s.defs[name] = s.object(t, strict)
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem(), strict)}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem(), strict)}
	}
	kind := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int32: "integer", reflect.Float64: "number"}[t.Kind()]
	return s.marked(map[string]any{"type": kind}, t.Name())
}

// server returns that of a file of package calibrate.
func (s *schema) server() map[string]any {
	number := map[string]any{"type": "number", "minimum": 0}
	source := map[string]any{"enum": []string{"measured", "benchmark", "roofline", "given", "assumed"}}
	object := func(properties map[string]any, required ...string) map[string]any {
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	}
	estimate := map[string]any{"anyOf": []any{number, object(map[string]any{
		"value": number, "lower": number, "upper": number, "source": source, "unknown": map[string]any{"type": "string"},
	}, "value", "source")}}
	all := map[string]any{"format": map[string]any{"const": calibrate.Format}, "name": map[string]any{"type": "string"}}
	names := []string{"base", "prefillToken", "sequence", "kvToken", "maxSeqs", "tokenBudget", "kvTokens"}
	for _, name := range names {
		all[name] = estimate
	}
	moments := map[string]any{"starts": map[string]any{"type": "integer", "minimum": 1}, "source": source}
	for _, name := range []string{"p50", "p90", "p99", "max", "p50Lower", "p50Upper"} {
		moments[name] = number
	}
	all["startup"] = object(moments, "starts", "p50", "p90", "p99", "max", "p50Lower", "p50Upper", "source")
	return object(all, append([]string{"format"}, names...)...)
}

// object returns the schema of a struct. Strict is for manifests, in which more must be given.
func (s *schema) object(t reflect.Type, strict bool) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, m := range members(t) {
		f := t.FieldByIndex(m.index)
		owner := t
		for _, i := range m.index[:len(m.index)-1] {
			owner = owner.Field(i).Type
		}
		properties[m.name] = s.marked(s.of(f.Type, strict), owner.Name()+"."+f.Name)
		if m.required && (strict || !optional(m.name)) {
			required = append(required, m.name)
		}
	}
	to := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		to["required"] = required
	}
	if strict {
		if t == reflect.TypeFor[manifest]() {
			properties["apiVersion"], properties["kind"] = map[string]any{"const": apiVersion}, map[string]any{"const": kind}
		}
		delete(properties, "highest")
	}
	return s.marked(to, t.Name())
}

// portPattern is the pattern of a PortNumber's text, as in the CRD.
const portPattern = `^([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`
