package keda

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	grpcmetadata "google.golang.org/grpc/metadata"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// TestRegressionHeadersOfStreamsAreSmall: with 440 headers, within the 16 KiB of a call, a stream took 42 KiB for as long as it was open,
// and the 20,000 that there may be 840 MB.
func TestRegressionHeadersOfStreamsAreSmall(t *testing.T) {
	s := newStage(t, nil)
	metadata := s.add("a", counting())
	client := externalscaler.NewExternalScalerClient(serve(t, GRPCConfig{Engine: s.engine}))
	for n, want := range map[int]codes.Code{0: codes.OK, 80: codes.OK, 140: codes.ResourceExhausted, 440: codes.ResourceExhausted} {
		var headers []string
		for i := range n {
			headers = append(headers, fmt.Sprint(i), "")
		}
		stream, err := client.StreamMetricSpec(grpcmetadata.AppendToOutgoingContext(t.Context(), headers...), scaledObject(chat, metadata))
		if err == nil {
			_, err = stream.Recv()
		}
		require.Equal(t, want, code(err), "%d: %v", n, err)
	}
}
