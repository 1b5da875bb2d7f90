package command

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRegressionARateThatIsNoneIsRefused: 1e-50 requests a second were accepted, which is 0 in the client, and that means 5; 1e300 are
// infinitely many there.
func TestRegressionARateThatIsNoneIsRefused(t *testing.T) {
	for qps, ok := range map[string]bool{"1": true, "300": true, "1e6": true, "1e-50": false, "0.001": false, "0": false, "-1": false, "1e300": false, "+Inf": false, "NaN": false} {
		var o Flags
		f := flag.NewFlagSet("test", flag.ContinueOnError)
		o.Define(f, Words{Name: "test"})
		require.NoError(t, f.Parse([]string{"-kube-api-qps=" + qps}))
		var wrong []string
		o.Check(func(ok bool, flag string, value any, rule string) {
			if !ok {
				wrong = append(wrong, fmt.Sprintf("-%s: %v: %s", flag, value, rule))
			}
		})
		if ok {
			require.Empty(t, wrong, qps)
			continue
		}
		require.Equal(t, []string{fmt.Sprintf("-kube-api-qps: %v: must be between 1 and 1000000", o.QPS)}, wrong)
	}
}
