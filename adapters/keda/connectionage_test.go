package keda

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHowLongAnOpenConnectionStaysIsWhatTheDocumentSays: gRPC adds up to a tenth to MaxConnectionAge.
func TestHowLongAnOpenConnectionStaysIsWhatTheDocumentSays(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	require.NoError(t, err)
	longest := connectionAge + connectionAge/10 + connectionGrace
	require.Contains(t, string(text), fmt.Sprintf("one that is open ends within %d minutes", int(longest/time.Minute)))
}
