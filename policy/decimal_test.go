package policy

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// decimalPattern is the pattern of a Decimal's text, as its marker has it.
const decimalPattern = `^[0-9]{1,12}(\.[0-9]{1,9})?$`

// TestPropTwinOfPatterns: what is read without patterns, as documents can have thousands of numbers, is what the patterns say.
func TestPropTwinOfPatterns(t *testing.T) {
	decimals, octals := regexp.MustCompile(decimalPattern), regexp.MustCompile(`^[-+]?0[0-9_]`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("0019.+-_ex\né")), 0, 24, -1).Draw(t, "text")
		require.Equal(t, decimals.MatchString(text), isDecimal(text), text)
		for _, tag := range []string{"!!int", "!!float", "!!str"} {
			n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
			require.Equal(t, tag != "!!str" && octals.MatchString(text), octal(n), "%s %q", tag, text)
		}
	})
}

// TestRegressionManyDecimalsTakeLittle: a pattern was compiled for each number, which took 5.3 MB for 165 of them.
func TestRegressionManyDecimalsTakeLittle(t *testing.T) {
	document := []byte("proportional:\n  metrics:\n" + strings.Repeat("  - {source: {name: a}, target: 3}\n", 165))
	read := testing.AllocsPerRun(5, func() { _, _ = Read(document, "p.yaml") })
	require.Less(t, read, 165*300.0)
}
