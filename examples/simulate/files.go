package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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

// beside returns the name of a file beside that of -scores.
func (o *options) beside(ending string) string {
	return strings.TrimSuffix(o.scores, filepath.Ext(o.scores)) + ending
}

// distinct refuses a file that is written where another one is written or read: one of them would be lost.
func (o *options) distinct() error {
	flags := map[string]string{} // by the file
	exist := map[string]os.FileInfo{}
	read := []file{
		{flag: "trace", name: o.trace},
		{flag: "config", name: o.config},
		{flag: "server", name: o.serverName},
		{flag: "history", name: o.history},
		{flag: "convert", name: o.convert},
		{flag: "roofline", name: o.roofline},
	}
	r := &o.prometheus
	var asks []string // one file may have certificates and a key
	for _, f := range []file{{flag: "http-config", name: r.httpConfig}, {flag: "bearer-token-file", name: r.tokenFile}, {flag: "tls-ca", name: r.ca}, {flag: "tls-cert", name: r.cert}, {flag: "tls-key", name: r.key}} {
		if name := canonical(f.name); !slices.Contains(asks, name) {
			read, asks = append(read, f), append(asks, name)
		}
	}
	if o.calibrate != "" {
		for name := range strings.SplitSeq(o.calibrate, ",") {
			read = append(read, file{flag: "calibrate", name: name})
		}
	}
	for _, f := range append(read, o.written()...) {
		name := canonical(f.name)
		switch first := flags[name]; {
		case f.name == "" || name == os.DevNull:
		case first != "":
			return misuse("-%s and -%s: only one of them can be %s", first, f.flag, f.name)
		case f.name == standard && slices.Contains([]string{"dump", "write-server", "scores", "resume", "baseline"}, f.flag):
			return misuse("-%s -: must be a file", f.flag)
		default:
			info, err := os.Stat(name)
			for other, one := range exist { // a file can have two names
				if err == nil && os.SameFile(info, one) {
					return misuse("-%s and -%s: %s is the same file as %s", flags[other], f.flag, f.name, other)
				}
			}
			flags[name] = f.flag
			if err == nil {
				exist[name] = info
			}
		}
	}
	return nil
}

// canonical returns one name for all names of a file: absolute, and without symbolic links.
func canonical(name string) string {
	if name == "" || name == standard {
		return name
	}
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		return target
	}
	for range mostLinks { // of a file that is not there yet
		folder, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			break
		}
		name = filepath.Join(folder, filepath.Base(name))
		target, err := os.Readlink(name)
		if err != nil {
			break
		}
		if name = target; !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
	}
	return name
}

// mostLinks is how many symbolic links are followed one after another: they may go round.
const mostLinks = 40

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
		err = errors.Join(err, os.Remove(canonical(name))) // a link to it stays
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
			err = errors.Join(err, os.Remove(canonical(name)))
		}
	}()
	return write(f)
}

// writeOutput writes to -o, or to standard output.
func (o *options) writeOutput(stdout io.Writer, text []byte) error {
	if err := writeFile(cmp.Or(o.output, standard), stdout, raw(text)); err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	return nil
}
