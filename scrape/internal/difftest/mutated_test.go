package difftest

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/scrape/internal/page"
)

func flags() (pages *int, seed *uint64) {
	return flag.Int("pages", 20_000, "mutated pages to compare"), flag.Uint64("seed", 1, "of the mutations")
}

var pageCount, firstSeed = flags() //nolint:gochecknoglobals // flags of a test are known before it begins

// A mutator makes pages that are nearly right.
type mutator struct {
	*rand.Rand
	bases [][]byte
}

func bases(tb testing.TB) [][]byte {
	tb.Helper()
	all := [][]byte{
		[]byte("# HELP a x\n# TYPE a gauge\na{e=\"0\"} 10\na{e=\"1\"} 4\n# TYPE x summary\nx{quantile=\"0.5\"} 1\nx_sum 7\nx_count 3\n"),
		[]byte("# TYPE h histogram\nh_bucket{e=\"0\",le=\"1\"} 2\nh_bucket{e=\"0\",le=\"2.5\"} 3\nh_bucket{e=\"0\",le=\"+Inf\"} 4\nh_sum{e=\"0\"} 5.5\nh_count{e=\"0\"} 4\n"),
		[]byte("# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{engine=\"0\",model_name=\"m/x\"} 120.0\nvllm:num_requests_waiting{engine=\"1\",model_name=\"m/x\"} 8.0 1772366395000\n"),
		[]byte("# TYPE \"my.name\" gauge\n{\"my.name\",a=\"b\"} 1\n\"my.name\"{a=\"c\"} 2\n{a} 3\n"),
		[]byte("h_count 5\n# TYPE h histogram\nh_count 6\nh_bucket{le=\"1\"} 2\nh_sum 1e3\n"),
	}
	for _, name := range pageNames() {
		lines := bytes.SplitAfter(loadPage(tb, name), []byte("\n"))
		for i := 0; i+6 < len(lines) && i < 600; i += 6 {
			all = append(all, bytes.Join(lines[i:i+6], nil))
		}
	}
	return all
}

func pieces() []string {
	return []string{
		"\ufeff", "\x00", "\v", "\f", "\r", "\u00a0", "\u0085", "\u2028", "\xff", "\"", "\\", "\\n", "{", "}", "{}", ",", "=", " ", "\t",
		"\n", "#", "# TYPE ", "# HELP ", "# TYPE a counter\n", "# TYPE h histogram\n", "NaN", "+Inf", "-1", "1e999", "0x1p4", "1_0", "_sum", "_count",
		"_bucket", "a", "h", "le=\"1\"", "le=\"1\",", "e=\"\"", "e=\"0\",", "quantile=\"0.5\"", "__name__=\"a\"", "é", "1", ".0", " 1000", "\r\n", "a 7\n", "h_sum 9\n", "vllm:num_requests_waiting",
	}
}

func (m *mutator) page() []byte {
	text := bytes.Clone(m.bases[m.IntN(len(m.bases))])
	if m.IntN(3) == 0 {
		text = append(text, m.bases[m.IntN(len(m.bases))]...)
	}
	for range 1 + m.IntN(4) {
		at := m.IntN(len(text) + 1)
		switch m.IntN(6) {
		case 0:
			text = splice(text, at, 0, pieces()[m.IntN(len(pieces()))])
		case 1: // at the beginning of a line
			at = bytes.LastIndexByte(text[:at], '\n') + 1
			text = splice(text, at, 0, pieces()[m.IntN(len(pieces()))])
		case 2:
			text = splice(text, at, min(1+m.IntN(3), len(text)-at), "")
		case 3:
			text = splice(text, at, min(1, len(text)-at), string([]byte{byte(m.IntN(256))}))
		case 4: // a line twice
			from := bytes.LastIndexByte(text[:at], '\n') + 1
			to := from + bytes.IndexByte(append(text[from:len(text):len(text)], '\n'), '\n')
			text = splice(text, from, 0, string(text[from:min(to+1, len(text))]))
		case 5:
			text = text[:len(text)-m.IntN(min(3, len(text)+1))]
		}
	}
	return text
}

func splice(text []byte, at, drop int, insert string) []byte {
	return bytes.Join([][]byte{text[:at], []byte(insert), text[at+drop:]}, nil)
}

// reduced is the page as the reader sees it: without lines whose name is another one, without HELP and carriage returns
// at the end of lines, and with a newline at its end.
func reduced(text []byte, wanted []string) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		first := strings.TrimLeft(line, " \t")
		n := 0
		for n < len(first) && (first[n] >= 'a' && first[n] <= 'z' || first[n] >= 'A' && first[n] <= 'Z' || first[n] == '_' || first[n] == ':' || n > 0 && first[n] >= '0' && first[n] <= '9') {
			n++
		}
		other := n > 0 && (n == len(first) || first[n] != '"')
		for _, w := range wanted {
			if rest, ok := strings.CutPrefix(first[:n], w); ok && (rest == "" || rest == "_sum" || rest == "_count" || rest == "_bucket") {
				other = false
			}
		}
		// A HELP of h_count makes it a family of its own, even if h is typed as a histogram later.
		help := strings.HasPrefix(first, "# HELP") && !strings.Contains(first, "_sum") && !strings.Contains(first, "_count") && !strings.Contains(first, "_bucket")
		if !other && !help {
			out.WriteString(line + "\n")
		}
	}
	return out.Bytes()
}

// TestMutatedPages: of a page that expfmt or Prometheus' parser accepts, and of one that they accept without the lines
// that nobody wants, the reader has the same numbers, or calls the family damaged.
func TestMutatedPages(t *testing.T) {
	all := bases(t)
	workers := runtime.GOMAXPROCS(0)
	var group sync.WaitGroup
	results := make([]result, workers)
	for w := range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			m := &mutator{Rand: rand.New(rand.NewPCG(*firstSeed, uint64(w))), bases: all}
			for range *pageCount / workers {
				if results[w].compare(m.page()); results[w].err != nil {
					return
				}
			}
		}()
	}
	group.Wait()
	var sum result
	for _, r := range results {
		require.NoError(t, r.err)
		sum.pages += r.pages
		sum.expfmt += r.expfmt
		sum.textparse += r.textparse
		sum.damaged += r.damaged
	}
	t.Logf("%d pages: %d times expfmt agreed, %d times textparse, %d families were damaged", sum.pages, sum.expfmt, sum.textparse, sum.damaged)
	require.Greater(t, sum.expfmt, sum.pages/10)
	require.Greater(t, sum.textparse, sum.pages/10)
}

type result struct {
	pages, expfmt, textparse, damaged int
	err                               error

	reader  *page.Reader
	wanted  [][]string
	filters []*page.Filter
}

func (r *result) compare(text []byte) {
	if r.reader == nil {
		r.reader, r.wanted = page.NewReader(new(page.Spares)), [][]string{wantedNames(), plainNames()}
		r.filters = []*page.Filter{page.NewFilter(r.wanted[0]), page.NewFilter(r.wanted[1])}
	}
	wanted, filter := r.wanted[r.pages%2], r.filters[r.pages%2]
	r.pages++
	if r.err = readInto(r.reader, filter, text); r.err != nil {
		return
	}
	for i := range wanted {
		if r.reader.Err(i) != nil {
			r.damaged++
		}
	}
	for _, as := range [][]byte{append(bytes.Clone(text), '\n'), reduced(text, wanted)} {
		if exempt(as, wanted) {
			continue
		}
		if want, ok := alone(as); ok {
			r.expfmt++
			for _, err := range equalsExpfmt(r.reader, want, wanted) {
				if err != nil {
					r.err = fmt.Errorf("%q: expfmt: %w", text, err)
					return
				}
			}
		}
		if lines, err := textparsed(as); err == nil {
			r.textparse++
			if err := equalsTextparse(r.reader, lines, wanted); err != nil {
				r.err = fmt.Errorf("%q: %w", text, err)
				return
			}
		}
	}
}
