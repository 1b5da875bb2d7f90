package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/inferscale/inferscale/policy"
)

// isDocument reports whether a file is a policy, not a log.
func isDocument(file string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(file))
}

// convertPolicies writes a file that -config took before there was one document as such a document. Comments stay.
func (o *options) convertPolicies(stdout io.Writer) error {
	data, err := os.ReadFile(o.convert)
	if err != nil {
		return &usageError{fmt.Errorf("-convert: %w", err)}
	}
	text, err := converted(data)
	if err == nil {
		_, err = policy.Read(text, o.convert+", converted")
	}
	if err != nil {
		return &usageError{fmt.Errorf("-convert: %w", err)}
	}
	output := o.output
	if output == "" {
		output = standard
	}
	return writeFile(output, stdout, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func converted(data []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	c := converter{}
	if len(root.Content) > 0 {
		for _, item := range under(root.Content[0], "policies").Content {
			c.entry(item, true)
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

// A converter renames the fields of nodes, in place.
type converter struct {
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

// fields calls a function for each field of a mapping; what it returns stands in its place.
func fields(n *yaml.Node, change func(key, value *yaml.Node) []*yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return
	}
	var all []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		all = append(all, change(n.Content[i], n.Content[i+1])...)
	}
	n.Content = all
}

// rename gives fields other names; one whose name then ends in Seconds is a duration.
func (c *converter) rename(n *yaml.Node, names map[string]string) {
	fields(n, func(key, value *yaml.Node) []*yaml.Node {
		if name := names[key.Value]; name != "" {
			key.Value = name
		}
		switch {
		case len(key.Value) > 7 && key.Value[len(key.Value)-7:] == "Seconds":
			c.seconds(value)
		case value.ShortTag() == "!!float":
			number(value)
		}
		return []*yaml.Node{key, value}
	})
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

// number puts a fraction in quotes.
func number(n *yaml.Node) {
	if f, err := strconv.ParseFloat(n.Value, 64); err == nil {
		n.Value = strconv.FormatFloat(f, 'f', -1, 64)
	}
	n.Tag, n.Style = "!!str", yaml.DoubleQuotedStyle
}

// entry converts a policy of a list. Bounds and a period of one that stands at the top make a spec of it.
func (c *converter) entry(n *yaml.Node, top bool) {
	if top {
		c.interval = nil
	}
	var outside, rules []*yaml.Node
	fields(n, func(key, value *yaml.Node) []*yaml.Node {
		switch key.Value {
		case "name":
			outside = append(outside, key, value)
			return nil
		case "bounds":
			c.rename(value, map[string]string{"min": "minReplicas", "max": "maxReplicas"})
			outside = append(outside, value.Content...)
			return nil
		}
		rules = append(rules, c.rule(key, value)...)
		return nil
	})
	if top && c.interval != nil {
		outside = append(outside, &yaml.Node{Kind: yaml.ScalarNode, Value: "intervalSeconds"}, c.interval)
	}
	if top && len(outside) > 2 {
		rules = []*yaml.Node{{Kind: yaml.ScalarNode, Value: "scaler"}, {Kind: yaml.MappingNode, Content: rules}}
	}
	n.Content = append(outside, rules...)
}

// rule converts an algorithm, or what stands around one.
func (c *converter) rule(key, value *yaml.Node) []*yaml.Node {
	switch key.Value {
	case "stabilized":
		key.Value = "stabilization"
		c.stabilization(value)
	case "rateLimited":
		key.Value = "rateLimits"
		c.limits(value)
	case "realtime":
		c.realtime(value)
	case "proportional":
		c.proportional(value)
	case "saturation":
		c.saturation(value)
	case "cron":
		c.cron(value)
	case "highest":
		members := under(value, "members")
		for _, m := range members.Content {
			c.entry(m, false)
		}
		return []*yaml.Node{key, members}
	case "floor":
		return c.floor(value)
	}
	return []*yaml.Node{key, value}
}

// floor puts a base beside its timetable, or in a list of one if there is anything around it.
func (c *converter) floor(n *yaml.Node) []*yaml.Node {
	base, cron := under(n, "base"), under(n, "cron")
	c.entry(base, false)
	c.cron(cron)
	timetable := []*yaml.Node{{Kind: yaml.ScalarNode, Value: "cron"}, cron}
	alone := []string{"realtime", "proportional", "saturation", "static"}
	if len(base.Content) == 2 && slices.Contains(alone, base.Content[0].Value) {
		return append(base.Content, timetable...)
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{base}}
	return append([]*yaml.Node{{Kind: yaml.ScalarNode, Value: "highest"}, list}, timetable...)
}

func (c *converter) realtime(n *yaml.Node) {
	for _, m := range under(n, "metrics").Content {
		threshold := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		c.rename(m, nil)
		fields(m, func(key, value *yaml.Node) []*yaml.Node {
			switch key.Value {
			case "name":
				return source(value)
			case "high", "low":
				threshold.Content = append(threshold.Content, key, value)
				return nil
			}
			return []*yaml.Node{key, value}
		})
		if under(threshold, "low").Kind == 0 {
			threshold.Content = append(threshold.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "low"}, &yaml.Node{Kind: yaml.ScalarNode, Value: "0"})
		}
		m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "threshold"}, threshold)
	}
	rule := map[string]string{"step": "scaleStep", "cooldown": "cooldownSeconds", "window": "stabilizationWindowSeconds"}
	c.rename(under(n, "up"), rule)
	c.rename(under(n, "down"), rule)
	fields(n, func(key, value *yaml.Node) []*yaml.Node {
		switch key.Value {
		case "up", "down":
			key.Value = map[string]string{"up": "scaleUpRule", "down": "scaleDownRule"}[key.Value]
		case "profile":
			value.Value = renamed(value.Value)
		case "period":
			c.seconds(value)
			if c.interval != nil && c.interval.Value != value.Value {
				c.fail(value, "%s: there is one interval for all of a policy, and another one has %s", value.Value, c.interval.Value)
			}
			c.interval = value
			return nil
		}
		return []*yaml.Node{key, value}
	})
}

// renamed returns the name that a profile has now.
func renamed(profile string) string {
	switch profile {
	case "seed":
		return string(policy.ProfileKaito)
	case "literal":
		return string(policy.ProfileWVA)
	}
	return profile
}

// source returns the field source for the name of a metric.
func source(name *yaml.Node) []*yaml.Node {
	s := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	words := []string{"name", name.Value}
	if name.Value == "in_flight" {
		words = []string{"engine", "VLLM", "signal", "InFlight"}
	}
	for _, word := range words {
		s.Content = append(s.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: word, Tag: "!!str"})
	}
	return []*yaml.Node{{Kind: yaml.ScalarNode, Value: "source"}, s}
}

func (c *converter) proportional(n *yaml.Node) {
	for _, m := range under(n, "metrics").Content {
		c.rename(m, nil)
		fields(m, func(key, value *yaml.Node) []*yaml.Node {
			if key.Value == "name" {
				return source(value)
			}
			return []*yaml.Node{key, value}
		})
	}
	c.rename(under(n, "up"), nil)
	c.rename(under(n, "down"), nil)
	c.rename(under(n, "panic"), map[string]string{"window": "windowSeconds"})
	c.stabilization(under(n, "stabilization"))
	c.limits(under(n, "rateLimits"))
	c.rename(n, map[string]string{"up": "scaleUp", "down": "scaleDown", "stableWindow": "stableWindowSeconds", "resolution": "resolutionSeconds"})
}

func (c *converter) stabilization(n *yaml.Node) {
	c.rename(n, map[string]string{"up": "upSeconds", "down": "downSeconds"})
}

func (c *converter) limits(n *yaml.Node) {
	for _, direction := range []string{"up", "down"} {
		for _, l := range under(under(n, direction), "limits").Content {
			c.rename(l, map[string]string{"period": "periodSeconds"})
			fields(l, func(key, value *yaml.Node) []*yaml.Node {
				if value.Value == "0" {
					return nil // replicas or percent
				}
				return []*yaml.Node{key, value}
			})
		}
	}
}

func (c *converter) saturation(n *yaml.Node) {
	c.rename(n, map[string]string{"transitionTimeout": "transitionTimeoutSeconds", "downStabilization": "downStabilizationSeconds"})
	fields(n, func(key, value *yaml.Node) []*yaml.Node {
		switch key.Value {
		case "profile":
			value.Value = renamed(value.Value)
		case "kv", "queue":
			s := source(value)
			s[0].Value = map[string]string{"kv": "kvCacheSource", "queue": "queueSource"}[key.Value]
			return s
		}
		return []*yaml.Node{key, value}
	})
}

func (c *converter) cron(n *yaml.Node) {
	for _, list := range []string{"policies", "windows"} {
		for _, entry := range under(n, list).Content {
			c.rename(entry, map[string]string{"replicas": "targetReplicas"})
		}
	}
}
