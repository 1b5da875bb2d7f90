package main

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

//go:embed data/azure2023_conv_1s.csv
var azureTrace string

// arrivals are the requests of one second, and the tokens of all of them together.
type arrivals struct {
	requests, input, output int
}

// readTrace reads a trace of arrivals a second: columns t_s, requests, input_tokens, output_tokens.
func readTrace(text string) ([]arrivals, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	var trace []arrivals
	for i, row := range rows[1:] {
		var n [4]int
		for k, field := range row[:min(len(row), len(n))] {
			if n[k], err = strconv.Atoi(field); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+2, err)
			}
		}
		if len(row) != len(n) || n[0] != i {
			return nil, fmt.Errorf("line %d: %q: must be second %d with requests, input and output tokens", i+2, row, i)
		}
		trace = append(trace, arrivals{n[1], n[2], n[3]})
	}
	return trace, nil
}
