package policy

import _ "embed"

//go:embed sample.yaml
var sample string

// Example returns a document with every rule, each with a comment on what it does.
func Example() string { return sample }
