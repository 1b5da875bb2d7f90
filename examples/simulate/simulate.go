package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
)

// simulate compares policies and shows what came of it.
func (o *options) simulate(ctx context.Context, stdout, stderr io.Writer) error {
	w, err := o.world()
	if err != nil {
		return err
	}
	contenders, err := o.contenders(w)
	if err != nil {
		return err
	}
	bar := newProgress(stderr, 1)
	defer bar.end()
	c, err := o.compare(ctx, w, contenders, bar)
	if err != nil {
		return err
	}
	if o.scenario == ramp {
		if c.fidelity, err = checkFidelity(ctx, o.parallel, bar); err != nil {
			return err
		}
	}
	bar.end()

	out := bufio.NewWriter(stdout)
	if o.explain {
		c.explanations(out)
	}
	c.table(out)
	if o.json != "" {
		if err := writeFile(o.json, c.json); err != nil {
			return fmt.Errorf("-json: %w", err)
		}
		fmt.Fprintf(out, "\nAll results: %s\n", o.json)
	}
	if o.report != "" {
		if err := writeFile(o.report, c.html); err != nil {
			return fmt.Errorf("-report: %w", err)
		}
		fmt.Fprintf(out, "\nReport with pictures: %s\n", o.report)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return unfaithful(c.fidelity)
}

// writeFile writes a file at once, so that a failure leaves none that is half written.
func writeFile(name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644) //nolint:gosec // a report is for everybody
}
