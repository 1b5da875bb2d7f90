package difftest

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// wantedNames are the families that the filter's properties look for: scalars, histograms, a name that is the count of
// another name, one that needs quotes.
func wantedNames() []string {
	return []string{
		"a", "h", "h_count", "x_sum", "my.name",
		"vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc",
		"vllm:time_to_first_token_seconds", "vllm:prompt_tokens_total", "sglang:num_queue_reqs",
		"sglang:time_to_first_token_seconds", "nv_trt_llm_request_metrics", "go_gc_duration_seconds", "process_start_time_seconds",
	}
}

// plainNames has no name that is a part of another: with it pages of histograms are not exempt.
func plainNames() []string { return []string{"a", "h", "x", "my.name", "vllm:num_requests_waiting"} }

// alone is expfmt without the filter. It is false for pages that expfmt does not accept, or panics on.
func alone(page []byte) (families map[string]*dto.MetricFamily, ok bool) {
	defer func() {
		if recover() != nil {
			families, ok = nil, false
		}
	}()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(page))
	return families, err == nil
}

// exempt reports whether the page has one of the things in which the reader differs from expfmt by intent; they are
// listed at page.Filter, and tested in TestReaderExceptions.
func exempt(page []byte, wanted []string) bool {
	typed := make(map[string]bool) // as histogram or summary
	braces := false
	for line := range strings.SplitSeq(string(page), "\n") {
		line = strings.TrimLeft(line, " \t")
		switch {
		case line == "":
			continue
		case line[0] == '#':
			f := strings.Fields(line[1:])
			if len(f) > 2 && f[0] == "TYPE" {
				switch strings.ToUpper(strings.ReplaceAll(f[len(f)-1], `\`, "")) {
				case "HISTOGRAM", "SUMMARY", "GAUGEHISTOGRAM", "GAUGE_HISTOGRAM":
					typed[strings.Trim(f[1], `"`)] = true
				}
				if strings.ContainsRune(f[1][1:], '"') && !strings.HasPrefix(f[1], `"`) {
					return true
				}
			}
			if len(f) > 1 && f[0] == "HELP" && strings.ContainsRune(f[1][1:], '"') && !strings.HasPrefix(f[1], `"`) {
				return true
			}
		case line[0] == '{':
			braces = true
			inner := strings.TrimLeft(line[1:], " \t")
			end := strings.IndexAny(inner, ",}=")
			if end <= 0 || inner[end] == '=' || !strings.HasPrefix(inner, `"`) && strings.Contains(inner[:end], `"`) || strings.HasPrefix(inner, `"`) && strings.ContainsAny(inner[1:max(strings.LastIndexByte(inner, '"'), 1)], `,}="\`) {
				return true
			}
		default:
			end := strings.IndexAny(line, "{ \t")
			if end < 0 {
				end = len(line)
			}
			if strings.ContainsRune(line[1:end], '"') && (line[0] != '"' || strings.ContainsRune(line[:end], '\\')) {
				return true
			}
		}
	}
	if len(typed) > 0 && braces {
		return true
	}
	for _, w := range wanted {
		for _, suffix := range []string{"_sum", "_count", "_bucket"} {
			if base, ok := strings.CutSuffix(w, suffix); ok && typed[base] {
				return true
			}
		}
	}
	return false
}

// accepted requires that the reader and expfmt give the same of a page that expfmt accepts.
func accepted(t require.TestingT, text []byte, wanted []string) {
	whole := text
	if len(text) > 0 && text[len(text)-1] != '\n' {
		// The reader completes a last line; expfmt alone would not accept it.
		whole = append(bytes.Clone(text), '\n')
	}
	if want, ok := alone(whole); ok && !exempt(text, wanted) {
		for i, err := range equalsExpfmt(read(text, wanted), want, wanted) {
			require.NoError(t, err, "%s of %q", wanted[i], text)
		}
	}
}

func TestReaderEqualsExpfmtOnThePages(t *testing.T) {
	for _, name := range pageNames() {
		t.Run(name, func(t *testing.T) {
			text := loadPage(t, name)
			all, ok := alone(text)
			require.True(t, ok)
			require.False(t, exempt(text, wantedNames()))
			// Every family by itself, and all at once.
			names := slices.Sorted(maps.Keys(all))
			for _, wanted := range append([][]string{wantedNames(), names}, slices.Collect(slices.Chunk(names, 1))...) {
				r := read(text, wanted)
				for i, err := range equalsExpfmt(r, all, wanted) {
					require.NoError(t, err)
					require.NoError(t, r.Err(i))
				}
				if lines, err := textparsed(text); err == nil {
					require.NoError(t, equalsTextparse(r, lines, wanted))
				}
			}
		})
	}
}

// pageLines draws lines that are likely to interfere with each other.
func pageLines() *rapid.Generator[string] {
	name := rapid.SampledFrom([]string{"a", "b", "h", "h_count", "h_sum", "h_bucket", "x", "x_sum", "x_bucket", "hh", "h_", `"my.name"`, `"h"`, `"a"`, "vllm:num_requests_waiting"})
	blank := rapid.SampledFrom([]string{" ", "\t", "  "})
	labels := rapid.SampledFrom([]string{"", "{}", `{le="1"}`, `{le="+Inf",}`, `{ e = "0" }`, `{e="a\nb}"}`, `{quantile="0.5"}`, `{e="1",f="2"}`})
	value := rapid.SampledFrom([]string{"1", "0", "2.5", "NaN", "-1", "7 1000", "+Inf"})
	return rapid.Custom(func(t *rapid.T) string {
		n := name.Draw(t, "name")
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2:
			typ := rapid.SampledFrom([]string{"gauge", "counter", "histogram", "summary", "untyped", "GaugeHistogram", ""}).Draw(t, "type")
			return "# TYPE" + blank.Draw(t, "b") + n + blank.Draw(t, "b") + typ
		case 3:
			return rapid.SampledFrom([]string{"# HELP ", "#HELP\t", " # HELP "}).Draw(t, "help") + n + rapid.SampledFrom([]string{"", " ", " text"}).Draw(t, "text")
		case 4:
			return rapid.SampledFrom([]string{"", "#", "# x", "# TYPE", "# TYPE " + n}).Draw(t, "comment")
		case 5:
			return "{" + n + rapid.SampledFrom([]string{"}", `,e="1"}`, " , }"}).Draw(t, "rest") + " " + value.Draw(t, "value")
		default:
			return rapid.SampledFrom([]string{"", " "}).Draw(t, "indent") + n + labels.Draw(t, "labels") + blank.Draw(t, "b") + value.Draw(t, "value")
		}
	})
}

func TestReaderEqualsExpfmt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := drawPage(t)
		accepted(t, page, wantedNames())
		accepted(t, page, plainNames())
	})
}

func drawPage(t *rapid.T) []byte {
	return []byte(strings.Join(rapid.SliceOfN(pageLines(), 0, 12).Draw(t, "lines"), "\n") + rapid.SampledFrom([]string{"\n", ""}).Draw(t, "end"))
}

// TestReaderComparesPages: expfmt accepts some of the pages that TestReaderEqualsExpfmt draws from. The draws are of fixed
// seeds, as a random run may miss what is rare.
func TestReaderComparesPages(t *testing.T) {
	pages := rapid.Custom(drawPage)
	accepted := 0
	for i := range 100 {
		page := pages.Example(i)
		if _, ok := alone(page); ok && !exempt(page, wantedNames()) {
			accepted++
		}
	}
	require.Positive(t, accepted, "no page drawn was accepted by expfmt")
}

func FuzzReader(f *testing.F) {
	for _, name := range pageNames() {
		page := loadPage(f, name)
		f.Add(page[:min(len(page), 512)])
	}
	for _, page := range []string{
		"# TYPE x summary\nx_bucket 1\nx_sum 2\nx{quantile=\"0.5\"} 3\n", "# TYPE h_sum gauge\n# TYPE h histogram\nh_sum 2\nh_count 3\n",
		"h_count 5\n# TYPE h histogram\nh_count 6\nh_bucket{le=\"1\"} 2\n",
		"# HELP h_count x\n# TYPE h histogram\nh_count 6\nh_bucket{le=\"1\"} 2\n",
		"# TYPE h h\\isto\\gram\nh_bucket{a=\"0\"} 0\n", "# TYPE x \\\nx 1\n",
		"{\"my.name\",a=\"b\"} 1\n{a} 1\n", "a+1\n", "\"a\"{b=\"}\"} 2\n", "# TYPE \"my.name\" gauge\n\"my.name\" 1\n",
	} {
		f.Add([]byte(page))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		accepted(t, page, wantedNames())
		accepted(t, page, plainNames())
	})
}

// Regression: expfmt drops backslashes from types and takes any letter whose upper case is the right one, so that the
// samples of a histogram were left out.
func TestTypesAsRead(t *testing.T) {
	for _, typ := range []string{`h\isto\\gram`, "hıstogram", "hiſtogram", `\gauge_histogram`, "GAUGEhıſtogram", `su\mmary`, "ſummary", `ga\uge`, `\`, "hıstogra", "h\xff"} {
		for _, rest := range []string{"h_bucket{le=\"1\"} 2\n", "h_sum 3\nh_count 4\n", "h 1\n", "h{quantile=\"0.5\"} 1\nh_count 2\n"} {
			accepted(t, []byte("# TYPE h "+typ+"\n"+rest), []string{"h"})
			accepted(t, []byte("# TYPE h "+typ+"\n"+rest), []string{"h", "h_sum", "h_bucket"})
		}
	}
}

func TestReaderExceptions(t *testing.T) {
	for _, row := range []struct {
		name     string
		page     string
		wanted   string
		alone    int // series of the wanted family; -1 if expfmt refuses the page or panics, -2 if its versions differ
		filtered int // likewise
	}{
		{"a wanted name that is the count of an unwanted histogram", "# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_count 3\n", "h_count", 0, 1},
		{"a wanted name that is the sum of an unwanted summary", "# TYPE x summary\nx_sum 3\n", "x_sum", 0, 1},
		{"braces after another histogram, on which expfmt panics", "# TYPE h histogram\n# TYPE g gauge\n{\"h_bucket\",a=\"b\",le=\"1\"} 2\n", "h", -1, 1},
		{"a line in braces without a name, which expfmt up to v0.67 adds to the line above", "a 1\n{x=\"y\"} 7\n", "a", -2, 1},
		{"a name behind a label", "{x=\"y\",\"a\"} 7\n", "a", 1, -1},
		{"a quote inside of a bare name", "a\"b\" 7\n", "ab", 1, 0},
		{"the same in braces, on a page that mentions the name", "{ab\"c\"} 7\n", "ab", 0, -1},
		{"a damaged line elsewhere", "a 1\nb{ 7\n", "a", -1, 1},
		{"a second TYPE", "# TYPE a gauge\n# TYPE a gauge\na 1\n", "a", -1, 1},
		{"CRLF", "# TYPE a gauge\r\na 1\r\n", "a", -1, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := -1
			if families, ok := alone([]byte(row.page)); ok {
				n = len(families[row.wanted].GetMetric())
			}
			if row.alone != -2 {
				require.Equal(t, row.alone, n, "expfmt alone")
			}
			n = -1
			if r := read([]byte(row.page), []string{row.wanted}); r.Err(0) == nil {
				n = 0
				for s := r.First(0); s != nil; s = r.Next(s) {
					n++
				}
			}
			require.Equal(t, row.filtered, n, "filtered")
		})
	}
}

// TestStrictnessTableAsExpfmtHasIt: which pages of the table expfmt reads, without an error and without a panic.
func TestStrictnessTableAsExpfmtHasIt(t *testing.T) {
	// Up to v0.67 expfmt reads this page, and doubles the line above; v0.72 refuses it.
	const fixedLater = "braces without a name, which expfmt adds to the line above"
	table, err := os.ReadFile(filepath.Join("..", "..", "testdata", "strict.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		text, err := strconv.Unquote(f[4])
		require.NoError(t, err)
		_, ok := alone([]byte(text))
		require.True(t, f[0] == fixedLater || strconv.FormatBool(ok) == f[3], f[0])
	}
}

// TestExpfmtLeavesAnEmptyMetricBehind shows why a map that comes with an error is never used: it reads as nobody waits.
func TestExpfmtLeavesAnEmptyMetricBehind(t *testing.T) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader("# TYPE q gauge\nq 14"))
	require.Error(t, err)
	require.Len(t, families["q"].GetMetric(), 1)
	require.Zero(t, families["q"].GetMetric()[0].GetGauge().GetValue())
	require.Panics(t, func() {
		var zero expfmt.TextParser
		_, _ = zero.TextToMetricFamilies(strings.NewReader("q 14\n"))
	})
}

// TestRenderedValuesAreReadBack renders random families with expfmt's own writer and reads them back.
func TestRenderedValuesAreReadBack(t *testing.T) {
	labelValue := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "}", "\"", "\\", "a\nb", "q 1", "日本"}))
	rapid.Check(t, func(t *rapid.T) {
		var text bytes.Buffer
		want := map[string][]float64{}
		for _, name := range []string{"before", "q", "q_by_reason", "my.queue", "after"} {
			f := &dto.MetricFamily{Name: proto.String(name), Type: dto.MetricType_GAUGE.Enum(), Help: proto.String(rapid.String().Draw(t, "help"))}
			seen := map[string]bool{}
			for i := range rapid.IntRange(1, 5).Draw(t, "series") {
				v := rapid.Float64Range(0, math.MaxFloat64/10).Draw(t, "value")
				l := labelValue.Draw(t, "label")
				if seen[l] {
					l = fmt.Sprint(i, l)
				}
				seen[l] = true
				f.Metric = append(f.Metric, &dto.Metric{
					Label: []*dto.LabelPair{{Name: proto.String("l"), Value: proto.String(l)}, {Name: proto.String("i"), Value: proto.String(fmt.Sprint(i))}},
					Gauge: &dto.Gauge{Value: proto.Float64(v)},
				})
				want[name] = append(want[name], v)
			}
			_, err := expfmt.MetricFamilyToText(&text, f)
			require.NoError(t, err)
		}
		wanted := []string{"q", "my.queue"}
		r := read(text.Bytes(), wanted)
		for i, name := range wanted {
			require.NoError(t, r.Err(i), "%s", text.String())
			var got []float64
			for s := r.First(i); s != nil; s = r.Next(s) {
				got = append(got, s.Value)
			}
			require.Equal(t, want[name], got)
		}
	})
}
