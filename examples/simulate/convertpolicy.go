package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/policy"
)

// isDocument reports whether a file is a policy, not a log.
func isDocument(file string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(file))
}

// convertPolicies writes a file that -config took before there was one document as such a document. Comments stay.
func (o *options) convertPolicies(stdout io.Writer) error {
	data, err := cli.ReadFile(o.convert, cli.Document)
	if err != nil {
		return misuse("-convert: %w", err)
	}
	text, err := converted(data)
	if err == nil {
		_, err = policy.Read(text, o.convert+", converted")
	}
	if err != nil {
		return misuse("-convert: %w", err)
	}
	return o.writeOutput(stdout, text)
}

func converted(data []byte) ([]byte, error) {
	var root, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("must have one document, and nothing behind it")
	}
	c := converter{names: newNames()}
	if len(root.Content) > 0 {
		for _, item := range under(root.Content[0], "policies").Content {
			c.entry(item)
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, err
	}
	err := encoder.Close()
	return b.Bytes(), err
}

// newNames returns the names that fields have now, by those that they had, behind the one of what they stood in. One that
// ends in Seconds was a duration.
func newNames() map[string]string {
	return map[string]string{
		"bounds/min": "minReplicas", "bounds/max": "maxReplicas",
		"/stabilized": "stabilization", "members/stabilized": "stabilization", "base/stabilized": "stabilization",
		"/rateLimited": "rateLimits", "members/rateLimited": "rateLimits", "base/rateLimited": "rateLimits",
		"stabilized/up": "upSeconds", "stabilization/up": "upSeconds",
		"stabilized/down": "downSeconds", "stabilization/down": "downSeconds",
		"limits/period": "periodSeconds",
		"realtime/up":   "scaleUpRule", "realtime/down": "scaleDownRule",
		"up/step": "scaleStep", "up/cooldown": "cooldownSeconds", "up/window": "stabilizationWindowSeconds",
		"down/step": "scaleStep", "down/cooldown": "cooldownSeconds", "down/window": "stabilizationWindowSeconds",
		"proportional/up": "scaleUp", "proportional/down": "scaleDown",
		"proportional/stableWindow": "stableWindowSeconds", "proportional/resolution": "resolutionSeconds",
		"panic/window":  "windowSeconds",
		"saturation/kv": "kvCacheSource", "saturation/queue": "queueSource",
		"saturation/transitionTimeout": "transitionTimeoutSeconds", "saturation/downStabilization": "downStabilizationSeconds",
		"policies/replicas": "targetReplicas", "windows/replicas": "targetReplicas",
	}
}

// A converter rewrites nodes in place.
type converter struct {
	names    map[string]string
	interval *yaml.Node // of the policy at hand
	err      error
}

func (c *converter) fail(n *yaml.Node, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
	}
}

// under returns what a mapping has under a name, or an empty node.
func under(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return &yaml.Node{}
}

func word(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }

// entry converts a policy at the top of the list. Bounds and a period make a spec of it.
func (c *converter) entry(n *yaml.Node) {
	c.interval = nil
	c.convert(n, "")
	outside, rules := apart(n.Content, "name", "minReplicas", "maxReplicas")
	if c.interval != nil {
		outside = append(outside, word("intervalSeconds"), c.interval)
	}
	if len(outside) > 2 {
		rules = []*yaml.Node{word("scaler"), {Kind: yaml.MappingNode, Content: rules}}
	}
	n.Content = append(outside, rules...)
}

// apart returns the fields of some names, and the others.
func apart(fields []*yaml.Node, names ...string) (these, others []*yaml.Node) {
	for i := 0; i+1 < len(fields); i += 2 {
		if slices.Contains(names, fields[i].Value) {
			these = append(these, fields[i:i+2]...)
		} else {
			others = append(others, fields[i:i+2]...)
		}
	}
	return these, others
}

// convert converts what stands under a name, the inside first.
func (c *converter) convert(n *yaml.Node, within string) {
	if n.Kind == yaml.AliasNode { // its anchor may not stay, nor what it stands for
		c.fail(n, "*%s: must be written out: aliases are not taken", n.Value)
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" {
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil {
			n.Value = strconv.FormatFloat(f, 'f', -1, 64)
		}
		n.Tag, n.Style = "!!str", yaml.DoubleQuotedStyle
	}
	var all []*yaml.Node
	for i := 0; i < len(n.Content); i++ {
		if n.Kind != yaml.MappingNode {
			c.convert(n.Content[i], within)
			all = append(all, n.Content[i])
			continue
		}
		key, value := n.Content[i], n.Content[i+1]
		c.convert(value, key.Value)
		all = append(all, c.field(within, key, value)...)
		i++
	}
	if thresholds, others := apart(all, "high", "low"); within == "metrics" && len(thresholds) > 0 {
		if len(thresholds) == 2 && thresholds[0].Value == "high" {
			thresholds = append(thresholds, word("low"), word("0"))
		}
		all = append(others, word("threshold"), &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: thresholds})
	}
	n.Content = all
}

// field returns what stands in the place of a field whose value was converted.
func (c *converter) field(within string, key, value *yaml.Node) []*yaml.Node {
	switch at := within + "/" + key.Value; {
	case at == "metrics/name":
		return []*yaml.Node{word("source"), source(value.Value)}
	case at == "saturation/kv", at == "saturation/queue":
		value = source(value.Value)
	case at == "realtime/period":
		c.seconds(value)
		if c.interval != nil && c.interval.Value != value.Value {
			c.fail(value, "%s: there is one interval for all of a policy, and another one has %s", value.Value, c.interval.Value)
		}
		c.interval = value
		return nil
	case within == "limits" && value.Value == "0":
		return nil // replicas or percent
	case key.Value == "profile":
		if p, err := policy.Named(within + "/" + value.Value); err == nil {
			_, value.Value, _ = strings.Cut(p.Name, "/")
		}
	case key.Value == "bounds":
		c.only(value, key.Value, "minReplicas", "maxReplicas") // converted already
		return value.Content
	case key.Value == "highest":
		c.only(value, key.Value, "members")
		value = under(value, "members")
	case key.Value == "floor":
		c.only(value, key.Value, "base", "cron")
		return floor(under(value, "base"), under(value, "cron"))
	}
	key.Value = cmp.Or(c.names[within+"/"+key.Value], key.Value)
	if strings.HasSuffix(key.Value, "Seconds") {
		c.seconds(value)
	}
	return []*yaml.Node{key, value}
}

// only refuses what else is in a mapping that does not stay, and what is none.
func (c *converter) only(n *yaml.Node, within string, names ...string) {
	if n.Kind != yaml.MappingNode && n.ShortTag() != "!!null" {
		c.fail(n, "%s: must be a mapping", within)
	}
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if key := n.Content[i]; !slices.Contains(names, key.Value) {
			c.fail(key, "%s.%s: is not a field here", within, key.Value)
		}
	}
}

// seconds makes whole seconds of a duration.
func (c *converter) seconds(n *yaml.Node) {
	d, err := time.ParseDuration(n.Value)
	if err != nil || d%time.Second != 0 {
		c.fail(n, "%q: must be whole seconds, as all times are now", n.Value)
		return
	}
	n.Value, n.Tag, n.Style = strconv.FormatInt(int64(d/time.Second), 10), "!!int", 0
}

// floor puts a base beside its timetable, or in a list of one if there is anything around it.
func floor(base, cron *yaml.Node) []*yaml.Node {
	alone := []string{"realtime", "proportional", "saturation", "static"}
	if len(base.Content) == 2 && slices.Contains(alone, base.Content[0].Value) {
		return append(base.Content, word("cron"), cron)
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{base}}
	return []*yaml.Node{word("highest"), list, word("cron"), cron}
}

// source returns where the metric of a name is read.
func source(name string) *yaml.Node {
	words := []string{"name", name}
	if name == "in_flight" {
		words = []string{"engine", "VLLM", "signal", "InFlight"}
	}
	s := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	for _, text := range words {
		s.Content = append(s.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: text, Tag: "!!str"})
	}
	return s
}
