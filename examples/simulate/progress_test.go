package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestProgressWithoutATerminal: a suite of half an hour said nothing in the log of a job.
func TestProgressWithoutATerminal(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, 2)
	p.step()
	require.Empty(t, out.String(), "what is short says nothing")
	p.more(3)
	p.at("chat/ramp")
	p.began, p.said = p.began.Add(-2*silence), p.said.Add(-silence)
	p.step()
	p.step()
	p.end()
	require.Equal(t, "simulate: chat/ramp: 2 of 5 runs after 1m0s\n", out.String())
	require.WithinDuration(t, time.Now(), p.said, silence)
}
