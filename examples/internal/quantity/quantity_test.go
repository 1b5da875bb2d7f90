package quantity_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/examples/internal/quantity"
)

func TestIsShort(t *testing.T) {
	for _, text := range []string{"15Gi", "1e9", "1E9", "0.5Ti", "-1e+12", "1e-12", "2E", "1Ei", strings.Repeat("9", 32)} {
		require.True(t, quantity.IsShort(text), text)
	}
	for _, text := range []string{"1e-999", "1E+100", "1e009", "-1e-99999999", strings.Repeat("9", 33)} {
		require.False(t, quantity.IsShort(text), text)
	}
}
