package scrape

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStrictnessTable feeds our path what the parser is known to be strict, lax or dangerous about. The wanted family
// is q, its true value 14 where there is one. In no row may there be another value: a value that is not the true one
// scales a fleet.
func TestStrictnessTable(t *testing.T) {
	table, err := os.ReadFile(filepath.Join("testdata", "strict.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, f, 5)
		want, err := strconv.ParseFloat(f[1], 64)
		require.NoError(t, err)
		page, err := strconv.Unquote(f[4])
		require.NoError(t, err)
		row := strictRow{f[0], page, want, f[2]}
		t.Run(row.name, func(t *testing.T) {
			m := Metric{Name: "q", Terms: []Series{{Families: []string{"q"}, Across: Sum}}}
			s, fail := readOne(t, row.page, m)
			require.Equal(t, row.reason, reasonOf(fail).String(), "%v", fail)
			if fail == nil {
				require.Equal(t, row.want, s.value)
			} else {
				require.Nil(t, s)
			}
		})
	}
}

// TestStrictHistograms is the table for histograms, read as the median of what was observed between two pages. The
// first page is empty, so that everything on the second is new.
func TestStrictHistograms(t *testing.T) {
	const typ = "# TYPE h histogram\n"
	for _, row := range []struct {
		name   string
		page   string
		read   Read
		want   float64
		reason Reason
	}{
		{"plain", typ + "h_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 4\nh_bucket{le=\"+Inf\"} 4\nh_sum 5\nh_count 4\n", Quantile, 1, None},
		{"mean", typ + "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 4\nh_sum 5\nh_count 4\n", Mean, 1.25, None},
		{"sum before buckets, any order", typ + "h_sum 5\nh_bucket{le=\"+Inf\"} 4\nh_count 4\nh_bucket{le=\"2\"} 4\nh_bucket{le=\"1\"} 2\n", Quantile, 1, None},
		{"without +Inf", typ + "h_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 4\nh_sum 5\nh_count 4\n", Quantile, 1, None},
		{"without +Inf, count above the last bucket", typ + "h_bucket{le=\"1\"} 2\nh_sum 5\nh_count 8\n", Quantile, 1, None},
		{"without a count", typ + "h_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 4\nh_bucket{le=\"+Inf\"} 4\nh_sum 5\n", Quantile, 1, None},
		{"mean without a count", typ + "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 4\nh_sum 5\n", Mean, 1.25, None},
		{"float counts", typ + "h_bucket{le=\"1\"} 0.5\nh_bucket{le=\"2\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum 5\nh_count 1\n", Quantile, 1, None},
		{"whole numbers of Python", typ + "h_bucket{le=\"1.0\"} 2.0\nh_bucket{le=\"2.0\"} 4.0\nh_bucket{le=\"+Inf\"} 4.0\nh_sum 5.0\nh_count 4.0\n", Quantile, 1, None},
		{"gauge histogram", "# TYPE h gaugehistogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 4\nh_sum 5\nh_count 4\n", Quantile, 0, Type},
		{"summary as a mean", "# TYPE h summary\nh{quantile=\"0.5\"} 2\nh_sum 5\nh_count 4\n", Mean, 1.25, None},
		{"summary as a quantile", "# TYPE h summary\nh{quantile=\"0.5\"} 2\nh_sum 5\nh_count 4\n", Quantile, 0, Type},
		{"damaged bucket beside a summary, which has none", "# TYPE h summary\nh_bucket{ 1\nh_sum 5\nh_count 4\n", Mean, 1.25, None},
		{"gauge", "# TYPE h gauge\nh 3\n", Mean, 0, Type},
		{"untyped", "h 3\n", Quantile, 0, Type},
		{"without TYPE it falls apart", "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 4\nh_sum 5\nh_count 4\n", Quantile, 0, NotFound},
		{"two buckets of one bound", typ + "h_bucket{le=\"1\"} 2\nh_bucket{le=\"1.0\"} 2\nh_bucket{le=\"+Inf\"} 4\nh_sum 5\nh_count 4\n", Quantile, 0, Duplicate},
		{"not cumulative", typ + "h_bucket{le=\"1\"} 3\nh_bucket{le=\"2\"} 2\nh_bucket{le=\"+Inf\"} 4\nh_sum 5\nh_count 4\n", Quantile, 0, Buckets},
		{"count below the buckets", typ + "h_bucket{le=\"1\"} 3\nh_sum 5\nh_count 2\n", Quantile, 0, Buckets},
		{"no finite bucket", typ + "h_bucket{le=\"+Inf\"} 4\nh_sum 5\nh_count 4\n", Quantile, 0, Buckets},
		{"sum twice", typ + "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 4\nh_sum 5\nh_sum 3598\nh_count 4\n", Mean, 0, Duplicate},
		{"count twice", typ + "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 4\nh_sum 5\nh_count 4\nh_count 4\n", Mean, 0, Duplicate},
		{"sum twice, for a quantile", typ + "h_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 4\nh_sum 5\nh_sum 5\nh_count 4\n", Quantile, 0, Duplicate},
		{"sum of a summary twice", "# TYPE h summary\nh_sum 5\nh_sum 6\nh_count 4\n", Mean, 0, Duplicate},
		{"count of a summary twice", "# TYPE h summary\nh_sum 5\nh_count 4\nh_count 5\n", Mean, 0, Duplicate},
		{"sum twice, labels in another order", typ + "h_sum{a=\"1\",b=\"2\"} 5\nh_sum{b=\"2\",a=\"1\"} 6\nh_count{a=\"1\",b=\"2\"} 4\n", Mean, 0, Duplicate},
		{"negative count of a summary", "# TYPE h summary\nh_sum 5\nh_count -4\n", Mean, 0, Parse},
		{"half a count of a summary, which expfmt cuts off", "# TYPE h summary\nh_sum 5\nh_count 2.5\n", Mean, 0, Parse},
		{"NaN count of a summary", "# TYPE h summary\nh_sum 5\nh_count NaN\n", Mean, 0, Parse},
		{"NaN as a bound", typ + "h_bucket{le=\"NaN\"} 2\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 4\nh_count 4\n", Quantile, 0, Parse},
		{"a bucket under the name of the histogram", typ + "h{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 4\nh_count 4\n", Quantile, 0, Parse},
		{"le at the sum", typ + "h_bucket{le=\"1\"} 2\nh_sum{le=\"1\"} 4\nh_count 4\n", Mean, 0, Parse},
		{"sum alone", typ + "h_sum 5\n", Quantile, 0, Buckets},
		{"mean without a sum", typ + "h_bucket{le=\"1\"} 2\nh_count 4\n", Mean, 0, Buckets},
		{"a bucket of zero", typ + "h_bucket{le=\"0\"} 2\nh_bucket{le=\"1\"} 6\nh_count 6\n", Quantile, 0.25, None},
		{"bound below zero", typ + "h_bucket{le=\"-1\"} 2\nh_bucket{le=\"+Inf\"} 4\nh_count 4\n", Quantile, 0, Buckets},
		{"NaN count", typ + "h_bucket{le=\"1\"} NaN\nh_bucket{le=\"+Inf\"} 4\nh_count 4\n", Quantile, 0, NonFinite},
		{"infinite count", typ + "h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} +Inf\n", Quantile, 0, NonFinite},
		{"negative count", typ + "h_bucket{le=\"1\"} -1\nh_bucket{le=\"+Inf\"} 4\n", Quantile, 0, Parse},
		{"negative sum", typ + "h_bucket{le=\"1\"} 1\nh_sum -5\nh_count 1\n", Mean, 0, Negative},
		{"NaN sum", typ + "h_bucket{le=\"1\"} 1\nh_sum NaN\nh_count 1\n", Mean, 0, NonFinite},
		{"NaN sum does not matter to a quantile", typ + "h_bucket{le=\"2\"} 4\nh_sum NaN\nh_count 4\n", Quantile, 1, None},
		{"text as a bound", typ + "h_bucket{le=\"one\"} 1\nh_count 4\n", Quantile, 0, Parse},
		{"empty bound", typ + "h_bucket{le=\"\"} 1\nh_count 4\n", Quantile, 0, Parse},
		{"buckets in braces", typ + "# TYPE x gauge\n{\"h_bucket\",le=\"1\"} 2\n{\"h_bucket\",le=\"2\"} 4\n{\"h_count\"} 4\n", Quantile, 1, None},
		{"exemplar", typ + "h_bucket{le=\"1\"} 2 # {id=\"1\"} 1\nh_count 4\n", Quantile, 0, Parse},
	} {
		t.Run(row.name, func(t *testing.T) {
			term := Series{Families: []string{"h"}, Read: row.read}
			if row.read == Quantile {
				term.Quantile = 0.5
			}
			tape := newPageTape(t, Metric{Name: "h", Terms: []Series{term}})
			_, fails := tape.read(nil, origin())
			require.Equal(t, NotFound, reasonOf(fails[0]))
			shares, fails := tape.read([]byte(startFamily+" "+unix(5)+"\n"+row.page), origin().Add(15*time.Second))
			require.Equal(t, row.reason, reasonOf(fails[0]), "%v", fails[0])
			if row.reason == None {
				require.InDelta(t, row.want, shares[0].value, 1e-12)
			}
		})
	}
}

// TestBucketsOfAHistogramAreBounded: 256 are read, and one more is too many.
func TestBucketsOfAHistogramAreBounded(t *testing.T) {
	for finite, reason := range map[int]Reason{255: None, 256: TooMany} {
		var page strings.Builder
		page.WriteString("# TYPE h histogram\n")
		for i := range finite {
			fmt.Fprintf(&page, "h_bucket{le=\"%d\"} 1\n", i+1)
		}
		page.WriteString("h_sum 1\nh_count 1\n")
		tape := newPageTape(t, Metric{Name: "h", Terms: []Series{{Families: []string{"h"}, Read: Quantile, Quantile: 0.5}}})
		_, _ = tape.read(nil, origin())
		_, fails := tape.read([]byte(startFamily+" "+unix(5)+"\n"+page.String()), origin().Add(15*time.Second))
		require.Equal(t, reason, reasonOf(fails[0]))
	}
}

// A strictRow is a line of testdata/strict.txt: the name, the value if there is one, the reason, whether expfmt reads the
// page, which the module difftest asks it, and the page.
type strictRow struct {
	name   string
	page   string
	want   float64
	reason string
}
