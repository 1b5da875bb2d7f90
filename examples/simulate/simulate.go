package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// simulate compares policies and shows what came of it.
func (o *options) simulate(ctx context.Context, stdout, stderr io.Writer) error {
	if err := o.writable(); err != nil {
		return err
	}
	var p *past
	if o.fromHistory() {
		var err error
		if p, err = o.load(ctx, stderr); err != nil {
			return err
		}
	}
	w, err := o.world(p)
	if err != nil {
		return err
	}
	if p != nil {
		if err := o.believe(ctx, w, p, stdout, stderr); err != nil {
			return err
		}
	}
	contenders, err := o.contenders(w, stderr)
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
	return errors.Join(o.show(c, stdout, stderr), unfaithful(c.fidelity))
}

// show prints the table, and writes the files that are asked for. The table comes first: no file that fails takes it
// away.
func (o *options) show(c *comparison, stdout, stderr io.Writer) error {
	text := stdout
	if slices.ContainsFunc(o.files(), func(f file) bool { return f.name == standard }) {
		text = stderr
	}
	out := bufio.NewWriter(text)
	if o.explain {
		c.explanations(out)
	}
	c.table(out)
	failed := out.Flush()
	for _, file := range o.files() {
		if err := writeFile(file.name, stdout, func(w io.Writer) error { return file.write(c, w) }); err != nil {
			failed = errors.Join(failed, fmt.Errorf("-%s: %w", file.flag, err))
		} else if file.name != standard {
			fmt.Fprintf(text, "\n%s: %s\n", file.title, file.name)
		}
	}
	return failed
}
