package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/sim"
)

// A profile is a server by its name.
type profile struct {
	name   string
	server sim.Server
}

func profiles() []profile {
	return []profile{
		{"qwen32b", sim.Qwen32B()},
		{"qwen32b-fitted", sim.Qwen32BFitted()},
		{"llama70b-a100", sim.Llama70BA100()},
		{"llama70b-h100x4", sim.Llama70BH100x4()},
		{"llama70b-h100x8", sim.Llama70BH100x8()},
	}
}

// server returns that of -server: one that has a name, or the one of a file.
func (o *options) server() (sim.Server, error) {
	var names []string
	for _, p := range profiles() {
		if p.name == o.serverName {
			return p.server, nil
		}
		names = append(names, p.name)
	}
	if o.document == nil {
		return sim.Server{}, misuse("-server %q: must be a file, or one of %s", o.serverName, strings.Join(names, ", "))
	}
	s, err := o.document.Server()
	if err != nil {
		return s, &usageError{fmt.Errorf("-server %s: %w", o.serverName, err)}
	}
	if s.Name == "" {
		s.Name = o.serverName
	}
	return s, nil
}

// readServer reads the file of -server, if it is one.
func (o *options) readServer() error {
	for _, p := range profiles() {
		if p.name == o.serverName {
			return nil
		}
	}
	data, err := os.ReadFile(o.serverName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // and no name: server says so
	}
	if err != nil {
		return &usageError{fmt.Errorf("-server: %w", err)}
	}
	d, err := calibrate.Read(data, o.serverName)
	if err != nil {
		return &usageError{err}
	}
	o.document = &d
	return nil
}

// doubts says what of a server of a file is not known.
func (o *options) doubts() (notes []string) {
	if o.document == nil {
		return nil
	}
	for _, why := range o.document.Unknown() {
		notes = append(notes, "Warning: -server "+o.serverName+": "+why+".")
	}
	return notes
}

// calibrateRuns makes a server of a benchmark's files.
func (o *options) calibrateRuns(stdout, stderr io.Writer) error {
	var runs []calibrate.Run
	for name := range strings.SplitSeq(o.calibrate, ",") {
		data, err := os.ReadFile(name)
		if err != nil {
			return &usageError{fmt.Errorf("-calibrate: %w", err)}
		}
		more, err := calibrate.ReadRuns(data, name, 1)
		if err != nil {
			return &usageError{fmt.Errorf("-calibrate: %w", err)}
		}
		runs = append(runs, more...)
	}
	r, err := calibrate.FitRuns(runs, calibrate.Options{KVTokens: o.kvTokens, Name: "calibrated by a benchmark"})
	if err != nil {
		return &usageError{fmt.Errorf("-calibrate: %w", err)}
	}
	for _, why := range r.Unknown() {
		fmt.Fprintf(stderr, "simulate: warning: %s\n", why)
	}
	name := o.output
	if name == "" {
		name = standard
	}
	return writeFile(name, stdout, func(w io.Writer) error {
		_, err := w.Write(r.Text())
		return err
	})
}
