package history

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/scaling"
)

// MaxBytes is the largest dump that [Read] accepts, uncompressed.
const MaxBytes = 2 << 30

// maxSeriesBytes is the longest text of one series, which has at most MaxSteps values: it is read as a whole.
const maxSeriesBytes = 64 << 20

// A decoder reads JSON, of which each token and each value ends within so many bytes.
type decoder struct {
	*json.Decoder

	one *io.LimitedReader // of what is being read
}

func newDecoder(r io.Reader) decoder {
	one := &io.LimitedReader{R: r}
	d := decoder{json.NewDecoder(one), one}
	d.DisallowUnknownFields()
	return d
}

func (d decoder) Token() (json.Token, error) {
	d.one.N = maxSeriesBytes
	t, err := d.Decoder.Token()
	return t, d.long(err)
}

func (d decoder) More() bool {
	d.one.N = maxSeriesBytes
	return d.Decoder.More()
}

func (d decoder) Decode(into any) error {
	d.one.N = maxSeriesBytes
	return d.long(d.Decoder.Decode(into))
}

// long is an error that says so, if what was read was too long.
func (d decoder) long(err error) error {
	if err != nil && d.one.N <= 0 {
		return &scaling.FieldError{Field: "length", Value: printable.Plain("longer"), Rule: fmt.Sprintf("must be at most %d bytes", maxSeriesBytes)}
	}
	return err
}

// Read reads a dump, compressed with gzip or not, one series at a time. It is strict: unknown and repeated fields, anything
// after the dump, and whatever [Dump.Validate] refuses are errors.
func Read(r io.Reader) (*Dump, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	if mark, err := buffered.Peek(3); err == nil && string(mark) == "\ufeff" {
		buffered.Discard(3) //nolint:errcheck // they are in the buffer
	}
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		unpacked, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return read(unpacked)
	}
	return read(buffered)
}

func read(r io.Reader) (*Dump, error) {
	limited := &io.LimitedReader{R: r, N: MaxBytes + 1}
	in := newDecoder(limited)
	d := &Dump{}
	err := d.readObject(in)
	if limited.N <= 0 {
		return nil, &scaling.FieldError{Field: "dump", Value: "longer", Rule: fmt.Sprintf("must be of at most %d bytes", int64(MaxBytes))}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("dump, at byte %d: %w", in.InputOffset(), err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("dump, at byte %d: %w", in.InputOffset(), errors.New("there is something behind it"))
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Dump) readObject(in decoder) error {
	if err := delimiter(in, '{'); err != nil {
		return err
	}
	fields := map[string]any{
		"version": &d.Version, "model": &d.Model, "engine": &d.Engine, "namespace": &d.Namespace, "workload": &d.Workload,
		"start": (*moment)(&d.Start), "end": (*moment)(&d.End), "step": &d.Step, "series": nil,
	}
	for in.More() {
		token, err := in.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		to, known := fields[name]
		if !known {
			return &scaling.FieldError{Field: clipped(name), Value: "", Rule: "must be a field of a dump, and there once"}
		}
		delete(fields, name)
		if name == "series" {
			err = d.readSeries(in)
		} else if err = in.Decode(to); err != nil {
			err = fmt.Errorf("%s: %w", name, typed.Error(err))
		}
		if err != nil {
			return err
		}
	}
	return delimiter(in, '}')
}

// moment is a time, written as text and not as a number of seconds.
type moment time.Time

// UnmarshalJSON reads the time.
func (m *moment) UnmarshalJSON(text []byte) error {
	if err := (*time.Time)(m).UnmarshalJSON(text); err != nil {
		return &scaling.FieldError{Field: "time", Value: clipped(text), Rule: "must be as \"2026-01-31T00:00:00Z\""}
	}
	return nil
}

func (d *Dump) readSeries(in decoder) error {
	if err := delimiter(in, '['); err != nil {
		return err
	}
	values := 0
	for in.More() {
		if len(d.Series) == MaxSeries {
			return &scaling.FieldError{Field: "series", Value: "more", Rule: fmt.Sprintf("must be at most %d", MaxSeries)}
		}
		var read struct {
			Signal typed.Once[Signal] `json:"signal"`
			Part   typed.Once[Part]   `json:"part"`
			Router typed.Once[bool]   `json:"router"`
			Family typed.Once[string] `json:"family"`
			Pod    typed.Once[string] `json:"pod"`
			Labels typed.Once[labels] `json:"labels"`
			Every  typed.Once[int]    `json:"every"`
			From   typed.Once[int]    `json:"from"`
			Values typed.Once[Values] `json:"values"`
		}
		if err := in.Decode(&read); err != nil {
			return fmt.Errorf("series[%d]: %w", len(d.Series), typed.Error(err))
		}
		s := Series{
			Signal: read.Signal.Value, Part: read.Part.Value, Router: read.Router.Value, Family: read.Family.Value, Pod: read.Pod.Value,
			Labels: read.Labels.Value, Every: read.Every.Value, From: read.From.Value, Values: read.Values.Value,
		}
		if len(s.Labels) > maxLabels { // before the next are read; what else is wrong Validate says
			return &scaling.FieldError{Field: fmt.Sprintf("series[%d].labels", len(d.Series)), Value: len(s.Labels), Rule: fmt.Sprintf("must be at most %d", maxLabels)}
		}
		if values += len(s.Values); values > MaxValues {
			return &scaling.FieldError{Field: fmt.Sprintf("series[%d].values", len(d.Series)), Value: values, Rule: fmt.Sprintf("must be at most %d over all series", MaxValues)}
		}
		d.Series = append(d.Series, s)
	}
	return delimiter(in, ']')
}

// labels are labels of which none is repeated.
type labels map[string]string

// UnmarshalJSON reads the labels.
func (l *labels) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, (*map[string]string)(l)); err != nil {
		return err
	}
	seen := make(map[string]bool, len(*l))
	in := json.NewDecoder(bytes.NewReader(text))
	for i := 0; ; i++ { // {, and then a name and a value in turns
		token, err := in.Token()
		if err != nil {
			return nil //nolint:nilerr // it ends
		}
		if name, ok := token.(string); ok && i%2 == 1 {
			if seen[name] {
				return &scaling.FieldError{Field: clipped(name), Value: "", Rule: "must be there once"}
			}
			seen[name] = true
		}
	}
}

func delimiter(in decoder, want json.Delim) error {
	token, err := in.Token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("must be %q here, not %v", want.String(), token)
	}
	return nil
}

// Write writes a dump, one series per line.
func (d *Dump) Write(w io.Writer) error {
	if err := d.Validate(); err != nil {
		return err
	}
	head := *d
	head.Series = []Series{}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	out.Write(bytes.TrimSuffix(text, []byte("]}"))) //nolint:errcheck // Flush has it
	for i := range d.Series {
		if i > 0 {
			out.WriteByte(',') //nolint:errcheck // Flush has it
		}
		text, err := json.Marshal(&d.Series[i])
		if err != nil {
			return err
		}
		out.WriteByte('\n') //nolint:errcheck // Flush has it
		out.Write(text)     //nolint:errcheck // Flush has it
	}
	out.WriteString("\n]}\n") //nolint:errcheck // Flush has it
	return out.Flush()
}
