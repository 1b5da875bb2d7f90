package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A profile is a server by its name, which is that of policy documents where they have it, and by the name that it had before.
type profile struct {
	name, old  string
	server     sim.Server
	tokenBytes float64 // of a token in the KV cache
}

func profiles() []profile {
	return []profile{
		{"qwen3-32b-2xh100", "qwen32b", sim.Qwen32B(), 262_144},
		{"qwen3-32b-2xh100-fitted", "qwen32b-fitted", sim.Qwen32BFitted(), 262_144},
		{"llama2-70b-8xa100", "llama70b-a100", sim.Llama70BA100(), 327_680},
		{"llama2-70b-4xh100", "llama70b-h100x4", sim.Llama70BH100x4(), 327_680},
		{"llama2-70b-8xh100", "llama70b-h100x8", sim.Llama70BH100x8(), 327_680},
	}
}

// profile returns that of the name in -server, if there is one.
func (o *options) profile() (profile, bool) {
	for _, p := range profiles() {
		if o.serverName == p.name || o.serverName == p.old {
			return p, true
		}
	}
	return profile{}, false
}

// server returns that of -server: one that has a name, or the one of a file.
func (o *options) server() (sim.Server, error) {
	if p, ok := o.profile(); ok {
		return p.server, nil
	}
	if o.document == nil {
		names := each(profiles(), func(p profile) string { return p.name })
		return sim.Server{}, misuse("-server %q: must be a file, or one of %s", o.serverName, strings.Join(names, ", "))
	}
	s, err := o.document.Server()
	if err != nil {
		return s, misuse("-server %s: %w", o.serverName, err)
	}
	if s.Name == "" {
		s.Name = o.serverName
	}
	return s, nil
}

// tokenBytes returns the KV cache of a token: that of -kv-bytes, or of a server that has a name; 0 if it is not known.
func (o *options) tokenBytes() float64 {
	if p, ok := o.profile(); ok && !o.set["kv-bytes"] && (!o.fromHistory() || o.set["server"]) {
		return p.tokenBytes
	}
	return o.kvBytes
}

// readServer reads the file of -server, if it is one.
func (o *options) readServer() error {
	if _, ok := o.profile(); ok {
		return nil
	}
	data, err := cli.ReadFile(o.serverName, cli.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // and no name: server says so
	}
	if err != nil {
		return misuse("-server: %w", err)
	}
	d, err := calibrate.Read(data, o.serverName)
	if err != nil {
		return misuse("-server: %w", err)
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

// computeRoofline makes a server of a model's shape and cards.
func (o *options) computeRoofline(stdout, stderr io.Writer) error {
	cards, models, err := calibrate.Sheets()
	if err != nil {
		return err
	}
	names := each(cards, func(c calibrate.Card) string { return c.Name })
	i := slices.Index(names, o.card)
	if i < 0 {
		return misuse("-card %q: must be one of %s", o.card, strings.Join(names, ", "))
	}
	name, config := o.roofline, calibrate.Config{}
	names = each(models, func(m calibrate.Model) string { return m.Name })
	if k := slices.Index(names, o.roofline); k >= 0 {
		config = models[k].Config
	} else {
		data, err := cli.ReadFile(o.roofline, cli.Document)
		if errors.Is(err, fs.ErrNotExist) {
			return misuse("-roofline %q: must be a config.json, or one of %s", o.roofline, strings.Join(names, ", "))
		}
		if err == nil {
			config, err = calibrate.ReadConfig(data, o.roofline)
		}
		if err != nil {
			return misuse("-roofline: %w", err)
		}
	}
	d, err := calibrate.Roofline(name, config, cards[i], o.cards)
	if f, ok := errors.AsType[*scaling.FieldError](err); ok && f.Field == "cards" {
		return misuse("-cards %v: %s", f.Value, f.Rule)
	}
	if err != nil {
		return misuse("-roofline: %w", err)
	}
	fmt.Fprintf(stderr, "simulate: warning: computed from data sheets, and measured by nobody\n")
	return o.writeOutput(stdout, d.Text())
}

// mostBench is how long the file of a run may be, in bytes, as calibrate.ReadRuns has it.
const mostBench = 256 << 20

// calibrateRuns makes a server of a benchmark's files.
func (o *options) calibrateRuns(stdout, stderr io.Writer) error {
	var runs []calibrate.Run
	for name := range strings.SplitSeq(o.calibrate, ",") {
		if name == "" {
			return misuse("-calibrate %q: must have no empty entry", o.calibrate)
		}
		data, err := cli.ReadFile(name, mostBench)
		if err != nil {
			return misuse("-calibrate: %w", err)
		}
		more, err := calibrate.ReadRuns(data, name, 1)
		if err != nil {
			return misuse("-calibrate: %w", err)
		}
		runs = append(runs, more...)
	}
	r, err := calibrate.FitRuns(runs, calibrate.Options{KVTokens: o.kvTokens, Name: "calibrated by a benchmark"})
	if err != nil {
		return misuse("-calibrate: %w", err)
	}
	for _, x := range r.Excluded {
		fmt.Fprintf(stderr, "simulate: warning: %d of %d runs are left out: %s\n", x.Points, r.Points, x.Reason)
	}
	for _, why := range r.Unknown() {
		fmt.Fprintf(stderr, "simulate: warning: %s\n", why)
	}
	return o.writeOutput(stdout, r.Text())
}
