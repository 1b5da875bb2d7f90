package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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

// standard is the name of standard output.
const standard = "-"

// A file is what a flag asks for beside the table.
type file struct {
	flag, name, title string
	write             func(c *comparison, w io.Writer) error
}

// files are those that show writes.
func (o *options) files() (all []file) {
	for _, f := range []file{
		{"json", o.json, "All results", (*comparison).json},
		{"report", o.report, "Report with pictures", (*comparison).html},
		{"manifest", o.manifest, "LLMAutoScaler", (*comparison).llmAutoScaler},
		{"scaledobject", o.scaled, "ScaledObject", (*comparison).scaledObject},
	} {
		if f.name != "" {
			all = append(all, f)
		}
	}
	return all
}

// written are all files that the flags name to be written.
func (o *options) written() []file {
	if o.output != "" {
		return []file{{flag: "o", name: o.output}}
	}
	all := append(o.files(), file{flag: "dump", name: o.dump}, file{flag: "write-server", name: o.writeServer}, file{flag: "resume", name: o.resume})
	if o.scores != "" {
		all = append(all, file{flag: "scores", name: o.scores}, file{flag: "scores", name: o.beside(".csv")}, file{flag: "scores", name: o.beside(".svg")})
	}
	return append(all, file{flag: "baseline", name: o.baseline})
}

// writable tries the files before the runs are made for them. It leaves none behind.
func (o *options) writable() error {
	for _, f := range o.written() {
		if f.name == "" || f.name == standard || f.flag == "baseline" && !o.update {
			continue
		}
		if err := try(f.name); err != nil {
			return fmt.Errorf("-%s: %w", f.flag, err)
		}
	}
	return nil
}

func try(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil // a pipe, which is opened once
	}
	fresh := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // as writeFile has it
	if err != nil {
		return err
	}
	err = f.Close()
	if fresh {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// raw writes what is there already.
func raw(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

// writeFile writes a file at once, so that a failure leaves none that is half written.
func writeFile(name string, stdout io.Writer, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if name == standard {
		_, err := stdout.Write(b.Bytes())
		return err
	}
	return writeThrough(name, 0o644, raw(b.Bytes())) // a report is for everybody
}

// writeThrough writes a file as it comes, and removes what it could not write to the end.
func writeThrough(name string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() {
		info, unknown := f.Stat()
		err = errors.Join(err, f.Close())
		if err != nil && unknown == nil && info.Mode().IsRegular() {
			err = errors.Join(err, os.Remove(name))
		}
	}()
	return write(f)
}
