package difftest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scrape/internal/page"
)

// pageNames are the pages of scrape/testdata/pages that are text of version 0.0.4.
func pageNames() []string {
	return []string{
		"constructed-vllm-v1-dp1.txt", "constructed-vllm-v1-dp8.txt", "constructed-vllm-v1-dp16-lora600.txt.gz",
		"debian-node-exporter-1.5.txt", "llmd-sim-idle.txt", "sglang-docs-real.txt", "small-vllm-gauges.txt",
		"triton-trtllm-readme.txt", "vllm-v0-aibrix-docs-excerpt.txt", "vllm-v0-kubeai.txt",
	}
}

func loadPage(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "pages", name))
	require.NoError(tb, err)
	if strings.HasSuffix(name, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(b))
		require.NoError(tb, err)
		b, err = io.ReadAll(r)
		require.NoError(tb, err)
	}
	return b
}

// read is the reader on a page. Its pieces are those that a connection might deliver.
func read(text []byte, wanted []string) *page.Reader {
	r := page.NewReader(new(page.Spares))
	if err := readInto(r, page.NewFilter(wanted), text); err != nil {
		panic(err) // no page here has 100,000 samples
	}
	return r
}

func readInto(r *page.Reader, f *page.Filter, text []byte) error {
	r.Reset(f, 100_000, func(int) bool { return true })
	_, err := r.Read(context.Background(), bytes.NewReader(text), 1<<40)
	return err
}

// A sample is one line: by its part ("", "_bucket", "_sum" or "_count"), labels and bound. Two samples of one series that
// are no buckets have no value: twice.
type sample struct {
	part, labels string
	bound, value float64
	at           int64
	twice        bool
}

func compare(a, b sample) int {
	return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.labels, b.labels), cmp.Compare(a.bound, b.bound), cmp.Compare(a.value, b.value))
}

// ours lists what the reader has of a family.
func ours(r *page.Reader, family int) []sample {
	var all []sample
	for s := r.First(family); s != nil; s = r.Next(s) {
		one := func(part string, value float64, has bool) {
			if has {
				all = append(all, sample{part: part, labels: normal(r.Key(s)), value: value, at: s.At, twice: s.Twice})
			}
		}
		one("", s.Value, s.HasValue)
		one("_sum", s.Sum, s.HasSum)
		one("_count", s.Count, s.HasCount)
		for _, b := range r.Buckets(s, nil) {
			all = append(all, sample{part: "_bucket", labels: normal(r.Key(s)), bound: b.Bound, value: b.Count, at: s.At, twice: s.Twice})
		}
	}
	return all
}

// normal is a key with the numbers of le and quantile in one form, as textparse has them.
func normal(k page.Labels) string {
	if !bytes.Contains(k, []byte("le\xff")) {
		return string(k)
	}
	var pairs [][2]string
	parts := strings.Split(string(k), "\xff")
	for i := 0; i+1 < len(parts); i += 2 {
		pairs = append(pairs, [2]string{parts[i], parts[i+1]})
	}
	return key(pairs)
}

// key is what page.Reader.Key makes of labels.
func key(pairs [][2]string) string {
	for i, p := range pairs {
		if v, err := strconv.ParseFloat(p[1], 64); err == nil && (p[0] == "le" || p[0] == "quantile") {
			pairs[i][1] = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	var b strings.Builder
	for _, p := range pairs {
		if p[1] != "" {
			b.WriteString(p[0] + "\xff" + p[1] + "\xff")
		}
	}
	return b.String()
}

// theirs lists what expfmt has of a family.
func theirs(f *dto.MetricFamily) []sample {
	var all []sample
	for _, m := range f.GetMetric() {
		var pairs [][2]string
		for _, l := range m.GetLabel() {
			pairs = append(pairs, [2]string{l.GetName(), l.GetValue()})
		}
		k, at := key(pairs), m.GetTimestampMs()
		one := func(part string, bound, value float64) {
			all = append(all, sample{part: part, labels: k, bound: bound, value: value, at: at})
		}
		switch {
		case m.Gauge != nil:
			one("", 0, m.Gauge.GetValue())
		case m.Counter != nil:
			one("", 0, m.Counter.GetValue())
		case m.Untyped != nil:
			one("", 0, m.Untyped.GetValue())
		}
		if s := m.GetSummary(); s != nil {
			if s.SampleCount != nil {
				one("_count", 0, float64(s.GetSampleCount()))
			}
			if s.SampleSum != nil {
				one("_sum", 0, s.GetSampleSum())
			}
		}
		if h := m.GetHistogram(); h != nil {
			switch {
			case h.GetSampleCountFloat() == 0 && h.SampleCountFloat != nil:
				// A histogram with a bucket that is no whole number gets a count of 0 if it has none.
			case h.SampleCountFloat != nil:
				one("_count", 0, h.GetSampleCountFloat())
			case h.SampleCount != nil:
				one("_count", 0, float64(h.GetSampleCount()))
			}
			if h.SampleSum != nil {
				one("_sum", 0, h.GetSampleSum())
			}
			for _, b := range h.GetBucket() {
				n := float64(b.GetCumulativeCount())
				if b.CumulativeCountFloat != nil {
					n = b.GetCumulativeCountFloat()
				}
				one("_bucket", b.GetUpperBound(), n)
			}
		}
	}
	return all
}

// equalsExpfmt compares family by family. A family that the reader calls damaged is never wrong.
func equalsExpfmt(r *page.Reader, want map[string]*dto.MetricFamily, wanted []string) []error {
	failures := make([]error, len(wanted))
	for i, name := range wanted {
		if r.Err(i) != nil {
			continue
		}
		f := want[name]
		if (r.First(i) == nil) != (len(f.GetMetric()) == 0) {
			failures[i] = fmt.Errorf("series of %s: expfmt has %d", name, len(f.GetMetric()))
			continue
		}
		if f != nil && r.First(i) != nil && !strings.EqualFold(f.GetType().String(), r.Type(i).String()) {
			failures[i] = fmt.Errorf("type of %s: %v and %v", name, r.Type(i), f.GetType())
			continue
		}
		failures[i] = same(ours(r, i), theirs(f))
	}
	return failures
}

// same compares two lists of samples. Of what is there twice it is enough that ours knows.
func same(a, b []sample) error {
	doubled := map[string]bool{}
	for _, s := range a {
		doubled[s.labels] = doubled[s.labels] || s.twice
	}
	once := func(list []sample) []sample {
		list = slices.DeleteFunc(list, func(s sample) bool {
			return doubled[s.labels] || s.part == "_count" && (s.value == 0 || s.value >= 1<<63) // expfmt has counts of 64 bits, and no more
		})
		slices.SortFunc(list, compare)
		return list
	}
	a, b = once(a), once(b)
	if len(a) != len(b) {
		return fmt.Errorf("%d samples and %d:\n%v\n%v", len(a), len(b), a, b)
	}
	for i := range a {
		// Of a histogram with several timestamps expfmt keeps the last, and the reader the oldest.
		if compare(a[i], b[i]) != 0 || a[i].part == "" && a[i].at != b[i].at {
			return fmt.Errorf("%v and %v", a[i], b[i])
		}
	}
	return nil
}

// equalsTextparse compares with what Prometheus' own parser has: every sample of ours is one of its, and of scalars it
// has no other.
func equalsTextparse(r *page.Reader, lines map[string]map[string][]sample, wanted []string) error {
	for i, name := range wanted {
		if r.Err(i) != nil {
			continue
		}
		scalars := 0
		for _, s := range ours(r, i) {
			values := lines[name+s.part][s.labels]
			if s.part == "" && !s.twice {
				scalars++
			}
			if !s.twice && !slices.ContainsFunc(values, func(x sample) bool {
				return cmp.Compare(x.value, s.value) == 0 && (s.part != "_bucket" || x.bound == s.bound) && (s.part != "" || x.at == s.at)
			}) {
				return fmt.Errorf("%s%s%q: textparse has no %v at %v: %v", name, s.part, s.labels, s.value, s.at, values)
			}
		}
		if r.Type(i) >= page.Summary {
			continue
		}
		theirs, bounds := 0, false
		for k, values := range lines[name] {
			if len(values) == 1 {
				theirs++
			}
			bounds = bounds || strings.Contains(k, "le\xff") // one number in two forms is two series to us
		}
		if scalars != theirs && !bounds {
			return fmt.Errorf("%s: %d samples, textparse has %d", name, scalars, theirs)
		}
	}
	return nil
}

// textparsed lists samples by name and labels.
func textparsed(text []byte) (lines map[string]map[string][]sample, err error) {
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, errors.New("a NUL, which textparse takes for the end of the page")
	}
	if bytes.Contains(text, []byte("__name__")) {
		return nil, errors.New("a label that is another name to textparse, and refused by expfmt")
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("textparse panics: %v", p)
		}
	}()
	lines = map[string]map[string][]sample{}
	// Blanks at the beginning of a line are allowed, and textparse takes them for a part of the name.
	var trimmed bytes.Buffer
	for line := range bytes.Lines(text) {
		if bytes.Count(line, []byte(`"`))%2 == 1 {
			return nil, errors.New("a quote that does not end, which textparse may end lines later")
		}
		trimmed.Write(bytes.TrimLeft(line, " \t"))
	}
	p := textparse.NewPromParser(trimmed.Bytes(), labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, ts, v := p.Series()
		s := sample{value: v, bound: math.NaN()}
		if ts != nil {
			s.at = *ts
		}
		var ls labels.Labels
		p.Labels(&ls)
		name, part := ls.Get(labels.MetricName), ""
		if strings.HasSuffix(name, "_bucket") && ls.Has("le") {
			part = "_bucket"
			if s.bound, err = strconv.ParseFloat(ls.Get("le"), 64); err != nil {
				s.bound = math.NaN()
			}
		}
		var with, without [][2]string
		ls.Range(func(l labels.Label) {
			if l.Name == labels.MetricName {
				return
			}
			with = append(with, [2]string{l.Name, l.Value})
			if part != "_bucket" || l.Name != "le" {
				without = append(without, [2]string{l.Name, l.Value})
			}
		})
		if lines[name] == nil {
			lines[name] = map[string][]sample{}
		}
		// A bucket is looked for without its le, and as a scalar with it.
		keys := []string{key(with), key(without)}
		for _, k := range slices.Compact(keys) {
			lines[name][k] = append(lines[name][k], s)
		}
	}
}
