package scrape

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheLeastAndTheGreatestRatioOfAnEngine: an engine that has nothing to divide by has none.
func TestTheLeastAndTheGreatestRatioOfAnEngine(t *testing.T) {
	ratio := Metric{
		Name: "r", Terms: []Series{{Families: []string{"used"}, Across: Sum}}, Over: []Series{{Families: []string{"size"}, Across: Sum}},
	}
	s, fail := readOne(t, "used{e=\"0\"} 1\nused{e=\"1\"} 30\nused{e=\"2\"} 0\nsize{e=\"0\"} 4\nsize{e=\"1\"} 40\nsize{e=\"2\"} 0\n", ratio)
	require.Nil(t, fail)
	require.InDelta(t, 31.0/44, s.value, 1e-12)
	require.Equal(t, [2]float64{0.25, 0.75}, [2]float64{s.min, s.max})
	require.Equal(t, [2]int{3, 6}, [2]int{s.engines, s.series})
}

// TestScale: what is read is multiplied by it, whatever is read.
func TestScale(t *testing.T) {
	for _, row := range []struct {
		read Read
		want float64
	}{{Value, 0.007}, {Rate, 0.0002}, {Mean, 0.00125}, {Quantile, 0.001}} {
		s := Series{Families: []string{"f"}, Read: row.read, Scale: 0.001}
		typ := "gauge"
		switch row.read {
		case Rate:
			typ = "counter"
		case Quantile:
			s.Quantile = 0.5
			typ = "histogram"
		case Mean:
			typ = "histogram"
		case Value, Counts:
		}
		tape := newPageTape(t, Metric{Name: "m", Terms: []Series{s}})
		lines := "f 4\n"
		if typ == "histogram" {
			lines = "f_bucket{le=\"1\"} 2\nf_bucket{le=\"2\"} 4\nf_sum 5\nf_count 4\n"
		}
		page := startFamily + " " + unix(5) + "\n# TYPE f " + typ + "\n"
		_, _ = tape.read([]byte("x 1\n"), origin())
		if row.read == Rate {
			_, _ = tape.read([]byte(page+lines), origin().Add(time.Second))
			lines = "f 7\n"
		} else {
			lines = strings.ReplaceAll(lines, "f 4", "f 7")
		}
		shares, fails := tape.read([]byte(page+lines), origin().Add(16*time.Second))
		require.Nil(t, fails[0])
		require.InDelta(t, row.want, shares[0].value, 1e-12, row.read)
	}
}

// TestARatioToNothing is no number, and nothing to nothing is none observed.
func TestARatioToNothing(t *testing.T) {
	ratio := Metric{Name: "r", Terms: []Series{{Families: []string{"used"}}}, Over: []Series{{Families: []string{"size"}}}}
	_, fail := readOne(t, "used 5\nsize 0\n", ratio)
	require.ErrorContains(t, fail, "NonFinite: 5/0 is +Inf")
	s, fail := readOne(t, "used 0\nsize 4\n", ratio)
	require.Nil(t, fail)
	require.Equal(t, [2]float64{0, 4}, [2]float64{s.value, s.den})
	s, fail = readOne(t, "used 0\nsize 0\n", ratio)
	require.Nil(t, fail)
	require.True(t, s.idle())
}

// TestGroupsOfAPageAreItsOwn: which engines another page had, and which of their series were preferred, changes nothing.
func TestGroupsOfAPageAreItsOwn(t *testing.T) {
	q := Series{Families: []string{"q"}, GroupBy: []string{"e"}, Prefer: Matcher{Label: "p"}, Within: Max, Across: Sum}
	tape := newPageTape(t, Metric{Name: "q", Terms: []Series{q}})
	for i, step := range []struct {
		page string
		want float64
	}{
		{"q{e=\"0\",p=\"1\"} 100\nq{e=\"0\"} 1\nq{e=\"1\"} 2\nq{e=\"2\"} 4\n", 7},
		{"q{e=\"1\",p=\"1\"} 1\nq{e=\"5\"} 2\nq{e=\"2\"} 4\n", 7},
	} {
		shares, fails := tape.read([]byte(step.page), origin().Add(time.Duration(i)*time.Second))
		require.Nil(t, fails[0])
		require.InDelta(t, step.want, shares[0].value, 0, "page %d", i)
	}
}

// TestLinesOfGroupsMayBeMixed: engines are told apart by their labels, not by where their lines are.
func TestLinesOfGroupsMayBeMixed(t *testing.T) {
	q := Series{Families: []string{"q"}, GroupBy: []string{"e"}, Within: Max, Across: Sum}
	s, fail := readOne(t, "q{e=\"0\",r=\"0\"} 1\nq{e=\"1\",r=\"0\"} 20\nq{e=\"0\",r=\"1\"} 3\nq{e=\"1\",r=\"1\"} 10\n", Metric{Name: "q", Terms: []Series{q}})
	require.Nil(t, fail)
	require.InDelta(t, 23, s.value, 0)
	require.Equal(t, [2]float64{3, 20}, [2]float64{s.min, s.max})
	require.Equal(t, 2, s.engines)
}

// TestDamageToTheStartTime: what is read as a value does without it.
func TestDamageToTheStartTime(t *testing.T) {
	tape := newPageTape(t, waiting(0), rateOf("c_total"))
	_, fails := tape.read([]byte(startFamily+"{ 5\n"+waitingPage(4)+"# TYPE c_total counter\nc_total 7\n"), origin())
	require.Nil(t, fails[0])
	require.Equal(t, Parse, reasonOf(fails[1]))
}

func TestSGLangRanksAndPriorities(t *testing.T) {
	// Two data-parallel ranks; each tensor-parallel rank repeats the queue, and so does each priority beside the total.
	page := `# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{dp_rank="0",tp_rank="0",priority=""} 10
sglang:num_queue_reqs{dp_rank="0",tp_rank="1",priority=""} 9
sglang:num_queue_reqs{dp_rank="0",tp_rank="0",priority="1"} 6
sglang:num_queue_reqs{dp_rank="0",tp_rank="0",priority="2"} 4
sglang:num_queue_reqs{dp_rank="1",tp_rank="0"} 5
sglang:num_queue_reqs{dp_rank="1",tp_rank="0",priority="1"} 50
`
	s, fail := readOne(t, page, signal(t, SGLang, Waiting))
	require.Nil(t, fail)
	require.InDelta(t, 15, s.value, 0)
	require.Equal(t, 2, s.engines)
	require.Equal(t, 3, s.series)
	require.InDelta(t, 5, s.min, 0)
	require.InDelta(t, 10, s.max, 0)
}
