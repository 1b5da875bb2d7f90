package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a pod that does not answer may have decides nothing, in either direction.
func TestReadings(t *testing.T) {
	for _, tt := range []struct {
		answers []string
		reading string
		verdict string
	}{
		{[]string{"12", "14", "16"}, "3 of 3 pods: [14, 14]\n", "Up 3 -> 4\n"},
		{[]string{"12", "14", "down"}, "2 of 3 pods: [8.667, 12]\n", "Hold at 3\n"},
		{[]string{"16", "20", "down"}, "2 of 3 pods: [12, 15.33]\n", "Up 3 -> 4\n"},
		{[]string{"0", "0", "down"}, "2 of 3 pods: [0, 3.333]\n", "Hold at 3\n"},
		{[]string{"0", "1", "2"}, "3 of 3 pods: [1, 1]\n", "Down 3 -> 2\n"},
		{[]string{"down", "-1", "NaN"}, "0 of 3 pods: [0, 0]\n", "Unknown at 3\n"},
	} {
		var urls []string
		for _, answer := range tt.answers {
			p := pod(answer)
			t.Cleanup(p.Close)
			urls = append(urls, p.URL)
		}
		var out bytes.Buffer
		require.NoError(t, run(context.Background(), &out, time.Unix(1700000000, 0), urls))
		require.Contains(t, out.String(), tt.reading+tt.verdict)
	}
}
