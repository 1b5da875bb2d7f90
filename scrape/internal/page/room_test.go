package page

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// largePage has so many series of q and buckets of h, of labels that begin with a tag.
func largePage(tag string, series, buckets int) string {
	var b strings.Builder
	for i := range series {
		fmt.Fprintf(&b, "q{x=\"%s-%d\"} %d\n", tag, i, i)
	}
	b.WriteString("# TYPE h histogram\n")
	for i := range buckets {
		fmt.Fprintf(&b, "h_bucket{x=\"%s-%d\",le=\"%d\"} %d\n", tag, i%10, i/10, i)
	}
	return b.String()
}

// said is all that a reader knows of a page.
func said(r *Reader) (all []string) {
	for family := range r.tables {
		for s := r.First(family); s != nil; s = r.Next(s) {
			all = append(all, fmt.Sprint(family, r.Key(s), s.Value, s.HasValue, s.Twice, r.Buckets(s, nil), r.Find(family, r.Key(s)) == s))
		}
	}
	return all
}

// TestSparesChangeNothing: readers that hand their room to each other, in any order, say of every page what a reader by itself
// says; and what they have for a page is never more than twice what it was granted, and what is spare never more than its
// class.
func TestSparesChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spares Spares
		f := NewFilter([]string{"h", "q"})
		readers := make([]*Reader, rapid.IntRange(1, 4).Draw(t, "readers"))
		pages := make([]string, len(readers))
		for i := range readers {
			readers[i] = NewReader(&spares)
		}
		alone := NewReader(nil)
		for range rapid.IntRange(1, 8).Draw(t, "pages") {
			i := rapid.IntRange(0, len(readers)-1).Draw(t, "reader")
			tag := strings.Repeat(rapid.StringMatching("[a-z]").Draw(t, "tag"), rapid.SampledFrom([]int{1, 40, 4000}).Draw(t, "length"))
			series := rapid.SampledFrom([]int{0, 3, 300, 1500}).Draw(t, "series")
			if len(tag) > 40 {
				series /= 5
			}
			pages[i] = largePage(tag, series, rapid.SampledFrom([]int{0, 30, 3000}).Draw(t, "buckets"))
			require.NoError(t, readSamples(readers[i], f, pages[i], 10_000))
			require.LessOrEqual(t, readers[i].size(), 2*max(readers[i].held, grain))
			if rapid.Bool().Draw(t, "released") {
				readers[i].Release()
				pages[i] = ""
			}
		}
		for i, r := range readers {
			if pages[i] == "" {
				continue
			}
			require.NoError(t, readSamples(alone, f, pages[i], 10_000))
			if want, got := said(alone), said(r); !slices.Equal(want, got) {
				t.Fatalf("of a page of %d bytes, %d series alone and %d with others", len(pages[i]), len(want), len(got))
			}
		}
		for c := range spares {
			for m, ok := spares[c].Get().(*room); ok; m, ok = spares[c].Get().(*room) {
				require.LessOrEqual(t, m.size(), grain<<c)
			}
		}
	})
}

// BenchmarkLargePages reads pages of 9,000 series that no page had before, with the room of the one before and without.
func BenchmarkLargePages(b *testing.B) {
	text := []byte(largePage("a", 9000, 0))
	for _, row := range []struct {
		name   string
		spares *Spares
	}{{"alone", nil}, {"spares", new(Spares)}} {
		b.Run(row.name, func(b *testing.B) {
			r, f := NewReader(row.spares), NewFilter([]string{"q"})
			source := bytes.NewReader(nil)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				source.Reset(text)
				r.Reset(f, 10_000, always)
				if _, err := r.Read(b.Context(), source, 1<<40); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestALargePageTakesARoomOfTheNextClass where its own has none, rather than grow: it is twice what the page was granted at
// most.
func TestALargePageTakesARoomOfTheNextClass(t *testing.T) {
	f := NewFilter([]string{"h", "q"})
	taken := 0
	for range 50 { // a pool may forget any of them
		var spares Spares
		spares.put(room{keys: make([]byte, 0, grain+1)})
		r := NewReader(&spares)
		require.NoError(t, readSamples(r, f, largePage("x", 600, 0), 10_000))
		require.Zero(t, classOf(r.held))
		if cap(r.keys) == grain+1 {
			taken++
		}
	}
	require.Positive(t, taken)
}
