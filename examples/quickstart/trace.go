package main

import (
	"time"

	"github.com/inferscale/inferscale/sim/traces"
)

// arrivals are the requests of one second, and the tokens of all of them together.
type arrivals struct {
	requests, input, output int
}

// readTrace returns what arrives in each second of the hour of conversations.
func readTrace() ([]arrivals, error) {
	hour, err := traces.Azure2023Conversation()
	if err != nil {
		return nil, err
	}
	seconds := make([]arrivals, hour.Length/time.Second)
	for _, r := range hour.Requests {
		s := &seconds[r.At/time.Second]
		s.requests++
		s.input += int(r.Input)
		s.output += int(r.Output)
	}
	return seconds, nil
}
