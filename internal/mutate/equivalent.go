package main

import (
	"fmt"
	"os"
	"strings"
)

// An equivalents is the reasons of the changes that make no difference, by mutant.key:
//
//	saturation/decide.go: if known && canSpare {
//		&& became ||: canSpare is only set for what is known
type equivalents map[string]string

func readEquivalents(file string) (equivalents, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	known, line := equivalents{}, ""
	for i, s := range strings.Split(string(text), "\n") {
		change, reason, found := strings.Cut(strings.TrimPrefix(s, "\t"), ": ")
		switch {
		case s == "" || strings.HasPrefix(s, "#"):
		case !strings.HasPrefix(s, "\t"):
			line = s
		case line == "" || !found || reason == "":
			return nil, fmt.Errorf("%s:%d: not a line of source, nor a change and its reason", file, i+1)
		default:
			known[line+"\n\t"+change] = reason
		}
	}
	return known, nil
}

// missing returns the entries for the package that are none of its changes.
func (e equivalents) missing(p *program) (missing []string) {
	there := map[string]bool{}
	for _, m := range p.mutants {
		there[m.key()] = true
	}
	for key := range e {
		if dir := key[:strings.LastIndex(key[:strings.Index(key, ":")], "/")]; dir == p.rel(p.dir) && !there[key] {
			missing = append(missing, key)
		}
	}
	return missing
}
