package scrape

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// fixedLater is the row on which versions of expfmt differ: up to v0.67 it reads the page, and doubles the line above;
// v0.72 refuses it.
const fixedLater = "braces without a name, which expfmt adds to the line above"

// TestM4StrictnessTable feeds our path what the parser is known to be strict, lax or dangerous about. The wanted family
// is q, its true value 14 where there is one. In no row may there be another value: a value that is not the true one
// scales a fleet.
func TestM4StrictnessTable(t *testing.T) {
	const good = "# TYPE q gauge\nq 14\n"
	for _, row := range []struct {
		name   string
		page   string
		want   float64 // if reason is None
		reason Reason
		expfmt bool // expfmt alone, without the filter, reads the page
	}{
		{"plain", good, 14, None, true},
		{"empty body", "", 0, NotFound, true},
		{"blank lines", "\n\n \t\n", 0, NotFound, true},
		{"no TYPE", "q 14\n", 14, None, true},
		{"HELP alone", "# HELP q w\nq 14\n", 14, None, true},
		{"no final newline, complete body", "# TYPE q gauge\nq 14", 14, None, false},
		{"no final newline after another family", good + "x 1", 14, None, false},
		{"CRLF", "# TYPE q gauge\r\nq 14\r\n", 14, None, false},
		{"CRLF in a comment", "# HELP q w\r\n" + good, 14, None, true},

		{"garbage line", "garbage text\n" + good, 14, None, false},
		{"garbage after", good + "garbage text\n", 14, None, false},
		{"malformed other family", good + "x{a=\"b\" 1\n", 14, None, false},
		{"bad value of another family", good + "x 1,5\n", 14, None, false},
		{"bad label of another family", good + "x{a='b'} 1\n", 14, None, false},
		{"raw newline in a label of another family", good + "x{a=\"b\nc\"} 1\n", 14, None, false},
		{"duplicate label name in another family", good + "x{a=\"1\",a=\"2\"} 1\n", 14, None, false},
		{"invalid UTF-8 in another family", good + "x{a=\"\xff\"} 1\n", 14, None, false},
		{"unknown type of another family", "# TYPE x info\n" + good, 14, None, false},
		{"bad escape in HELP", "# HELP q a\\q\n" + good, 14, None, false},
		{"second HELP", "# HELP q a\n# HELP q b\n" + good, 14, None, false},
		{"second TYPE", good + "# TYPE q gauge\n", 14, None, false},
		{"one family in two blocks", "# TYPE q gauge\nq{e=\"0\"} 10\n# TYPE x gauge\nx 1\n# TYPE q gauge\nq{e=\"1\"} 4\n", 14, None, false},
		{"prefix of another name", good + "q_by_reason{reason=\"capacity\"} 14\nq:x 14\nqq 14\n", 14, None, true},
		{"name in HELP", "# HELP x the q 15\n" + good, 14, None, true},
		{"comment", "# q 15\n#q 15\n# TYPE\n#\n" + good, 14, None, true},

		{"TYPE after samples", "q 14\n# TYPE q gauge\n", 0, Parse, false},
		{"TYPE with a trailing space", "# TYPE q gauge \nq 14\n", 0, Parse, false},
		{"TYPE unknown", "# TYPE q unknown\nq 14\n", 0, Parse, false},
		{"TYPE info", "# TYPE q info\nq 14\n", 0, Parse, false},
		{"TYPE stateset", "# TYPE q stateset\nq 14\n", 0, Parse, false},
		{"TYPE in capitals", "# TYPE q GAUGE\nq 14\n", 14, None, true},
		{"TYPE with tabs", "#\tTYPE\tq\tgauge\nq\t14\n", 14, None, true},
		{"TYPE with a bad name", "# TYPE q+ gauge\nq 14\n", 0, Parse, false},

		{"empty value", "q\n", 0, Parse, false},
		{"empty value with labels", "q{a=\"b\"}\n", 0, Parse, false},
		{"blank value", "q \n", 0, Parse, false},
		{"trailing blank", "q 14 \n", 0, Parse, false},
		{"text value", "q many\n", 0, Parse, false},
		{"hexadecimal", "q 0xe\n", 0, Parse, false},
		{"hexadecimal with exponent", "q 0x7p1\n", 0, Parse, false},
		{"underscore", "q 1_4\n", 0, Parse, false},
		{"decimal comma", "q 14,0\n", 0, Parse, false},
		{"out of range", "q 1e999\n", 0, Parse, false},
		{"-nan", "q -nan\n", 0, Parse, false},
		{"two values", "q 14 15 16\n", 0, Parse, false},
		{"damaged second series", "q{e=\"0\"} 14\nq{e=\"1\" 3\n", 0, Parse, false},
		{"cut label set", "q{e=\"0\"} 14\nq{e=\"1\n", 0, Parse, false},
		{"duplicate label name", "q{a=\"1\",a=\"2\"} 14\n", 0, Parse, false},
		{"reserved label name", "q{__name__=\"1\"} 14\n", 0, Parse, false},
		{"invalid UTF-8 in a label", "q{a=\"\xff\"} 14\n", 0, Parse, false},
		{"bad escape in a label", "q{a=\"\\q\"} 14\n", 0, Parse, false},
		{"junk after the name", "q;14\n", 0, Parse, false},

		{"NaN", "q NaN\n", 0, NonFinite, true},
		{"nan", "q nan\n", 0, NonFinite, true},
		{"+Inf", "q +Inf\n", 0, NonFinite, true},
		{"Inf", "q Inf\n", 0, NonFinite, true},
		{"Infinity", "q Infinity\n", 0, NonFinite, true},
		{"-Inf", "q -Inf\n", 0, NonFinite, true},
		{"negative", "q -14\n", 0, Negative, true},
		{"sentinel beside a value", "q{e=\"0\"} 15\nq{e=\"1\"} -1\n", 0, Negative, true},
		{"negative zero beside a value", "q{e=\"0\"} 14\nq{e=\"1\"} -0\n", 14, None, true},

		{"fresh timestamp", "q 14 1772366395000\n", 14, None, true},
		{"stale timestamp", "q 14 1772366000000\n", 0, Stale, true},
		{"negative timestamp", "q 14 -1\n", 0, Stale, true},
		{"OpenMetrics timestamp", "q 14 1772366395.5\n", 0, Parse, false},
		{"exemplar", "q 14 # {id=\"1\"} 1\n", 0, Parse, false},
		{"exemplar in another family", good + "x_total 1 # {id=\"1\"} 1\n", 14, None, false},
		{"OpenMetrics EOF", good + "# EOF\n", 14, None, true},
		{"OpenMetrics counter", "# TYPE q counter\nq_total 14\n", 0, NotFound, true},

		{"counter", "# TYPE q counter\nq 14\n", 0, Type, true},
		{"histogram", "# TYPE q histogram\nq_bucket{le=\"+Inf\"} 1\nq_sum 1\nq_count 1\n", 0, Type, true},
		{"summary", "# TYPE q summary\nq{quantile=\"0.5\"} 14\n", 0, Type, true},
		{"histogram without a TYPE", "q_bucket{le=\"+Inf\"} 1\nq_sum 1\nq_count 1\n", 0, NotFound, true},
		{"duplicate series", "q{a=\"1\"} 14\nq{a=\"1\"} 14\n", 0, Duplicate, true},
		{"duplicate series, labels in another order", "q{a=\"1\",b=\"2\"} 7\nq{b=\"2\",a=\"1\"} 7\n", 0, Duplicate, true},
		{"duplicate series, empty label", "q{a=\"\"} 7\nq 7\n", 0, Duplicate, true},

		{"spaces everywhere", " \tq { a = \"1\" , b = \"2\" , }   14\n", 14, None, true},
		{"empty braces", "q{} 14\n", 14, None, true},
		{"trailing comma", "q{a=\"1\",} 14\n", 14, None, true},
		{"brace inside a label", "q{a=\"}{\"} 14\n", 14, None, true},
		{"newline and name inside a label", "q{a=\"x\\nq 15\"} 14\n", 14, None, true},
		{"unicode in a label", "q{a=\"日本\"} 14\n", 14, None, true},
		{"exponent of Python", "q 1.4e+001\n", 14, None, true},
		{"no space before the value", "q+14\n", 14, None, true},
		{"quoted name", "\"q\" 14\n", 14, None, true},
		{"quoted name in braces", "{\"q\",a=\"b\"} 14\n", 14, None, true},
		{"quoted name alone in braces", "{ \"q\" } 14\n", 14, None, true},
		{"bare name in braces", "{q,a=\"b\"} 14\n", 14, None, true},
		{"another quoted name that begins alike", good + "{\"q d\"} 15\n\"q\\\"\" 16\n", 14, None, true},
		{"name behind a label in braces", "{a=\"b\",\"q\"} 14\n", 0, Parse, true},
		{"unfinished quoted name", good + "{\"q 15\n", 0, Parse, false},
		{"unfinished quoted name of another family", good + "{\"x 15\n", 14, None, false},
		{fixedLater, good + "{a=\"b\"} 15\n", 14, None, true},
		{"empty braces without a name, on which expfmt panics", "{} 15\n" + good, 14, None, false},
		{"quote inside a bare name, which makes it another name", good + "q\"q\" 15\n", 14, None, true},

		{"byte order mark", "\ufeffq 14\n", 0, NotFound, false},
		{"byte order mark and more", "\ufeff# TYPE q gauge\nq 14\n", 14, None, false},
		{"HTML", "<html>q 15</html>\n", 0, NotFound, false},
		{"JSON", "{\"q\": 15}\n", 0, Parse, false},
		{"JSON array", "[{\"q\": 15}]\n", 0, NotFound, false},
		{"page as one quoted string", "\"q 15\\nx 1\\n\"\n", 0, NotFound, false},
		{"NUL", "q\x0014\n", 0, Parse, false},
		{"NUL bytes before", "\x00\x00\n" + good, 14, None, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := Metric{Name: "q", Terms: []Series{{Families: []string{"q"}, Across: Sum}}}
			s, fail := readOne(t, row.page, m)
			require.Equal(t, row.reason, reasonOf(fail), "%v", fail)
			if row.reason == None {
				require.Equal(t, row.want, s.value)
			} else {
				require.Nil(t, s)
			}
			if row.name != fixedLater {
				require.Equal(t, row.expfmt, expfmtAccepts(row.page))
			}
		})
	}
}

// expfmtAccepts reports whether expfmt alone reads the page, without an error and without a panic.
func expfmtAccepts(page string) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	p := expfmt.NewTextParser(model.UTF8Validation)
	_, err := p.TextToMetricFamilies(strings.NewReader(page))
	return err == nil
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

// TestM4StrictHistograms is the table for histograms, read as the median of what was observed between two pages. The
// first page is empty, so that everything on the second is new.
func TestM4StrictHistograms(t *testing.T) {
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
		{"sum alone", typ + "h_sum 5\n", Quantile, 0, Buckets},
		{"mean without a sum", typ + "h_bucket{le=\"1\"} 2\nh_count 4\n", Mean, 0, Buckets},
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
			shares, fails := tape.read([]byte(row.page), origin().Add(15*time.Second))
			require.Equal(t, row.reason, reasonOf(fails[0]), "%v", fails[0])
			if row.reason == None {
				require.InDelta(t, row.want, shares[0].value, 1e-12)
			}
		})
	}
}
