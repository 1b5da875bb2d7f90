package command

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStarting(t *testing.T) {
	failed := errors.New("failed")
	ctx, cancel := context.WithCancel(t.Context())
	require.Equal(t, failed, Starting(ctx, failed))
	cancel()
	require.NoError(t, Starting(ctx, failed))
}
