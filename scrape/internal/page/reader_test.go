package page

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func always(int) bool { return true }

func readText(r *Reader, f *Filter, text string) error { return readSamples(r, f, text, 1000) }

func readSamples(r *Reader, f *Filter, text string, most int) error {
	r.Reset(f, most, always)
	_, err := r.Read(context.Background(), strings.NewReader(text), 1<<40)
	return err
}

func TestReaderAllocatesNothing(t *testing.T) {
	text := strings.Repeat("x{a=\"b\"} 1\n", 100) + "# TYPE h histogram\nh_bucket{a=\"\\\\\",le=\"1\"} 2\nh_sum{a=\"b\"} 2.5\nh_count 2.0\n\"q\" 7 1000\n"
	r, f := NewReader(nil), NewFilter([]string{"h", "q"})
	source := strings.NewReader(text)
	require.Zero(t, testing.AllocsPerRun(20, func() {
		source.Reset(text)
		r.Reset(f, 1000, always)
		_, err := r.Read(context.Background(), source, 1<<40)
		require.NoError(t, err)
	}))
	require.NotNil(t, r.First(0))
	require.InDelta(t, 7, r.First(1).Value, 0)
}

func TestReaderRecoversAfterDamage(t *testing.T) {
	r, f := NewReader(nil), NewFilter([]string{"a", "h"})
	for range 3 {
		require.NoError(t, readText(r, f, "# TYPE h histogram\nh_bucket{le=\"1\",x=\"y\"} 2\na{b=\"c\" 1\n"))
		require.ErrorContains(t, r.Err(0), `labels without a comma: "a{b=\"c\" 1"`)
		require.NoError(t, r.Err(1))
		require.NoError(t, readText(r, f, "a 3\n"))
		require.NoError(t, r.Err(0))
		require.Nil(t, r.First(1))
		require.Equal(t, Untyped, r.Type(1))
		require.Empty(t, r.Key(r.First(0)))
		require.Nil(t, r.Next(r.First(0)))
	}
}

// TestPiecesChangeNothing: a page is the same however a connection cuts it.
func TestPiecesChangeNothing(t *testing.T) {
	text := "x 1\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 4\nq{e=\"1\"} 120\n" + strings.Repeat("y 1\n", 40_000) + "q{e=\"2\"} 3"
	for _, cut := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
		r := NewReader(nil)
		r.Reset(NewFilter([]string{"q", "h"}), 1000, always)
		n, err := r.Read(context.Background(), cut(strings.NewReader(text)), 1<<40)
		require.NoError(t, err)
		require.Len(t, text, int(n))
		require.True(t, r.Open())
		require.InDelta(t, 120, r.First(0).Value, 0)
		require.InDelta(t, 3, r.Next(r.First(0)).Value, 0)
		require.Len(t, r.Buckets(r.First(1), nil), 2)
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 3*buffered)
	for _, row := range []struct{ text, wrong string }{
		{"q 14\nx{a=\"" + long + "\"} 1\nq{e=\"1\"} 15\n", ""},
		{"q 14\n# HELP x " + long + "\nq{e=\"1\"} 15\n", ""},
		{"q 14\nq{a=\"" + long + "\"} 1\nq{e=\"1\"} 15\n", "longer than 64 KiB"},
		{"q 14\nq " + strings.Repeat(" ", 3*buffered) + "1\nq{e=\"1\"} 15\n", "longer than 64 KiB"},
	} {
		r := NewReader(nil)
		require.NoError(t, readText(r, NewFilter([]string{"q"}), row.text))
		if row.wrong != "" {
			require.ErrorContains(t, r.Err(0), row.wrong)
			continue
		}
		require.NoError(t, r.Err(0))
		require.InDelta(t, 15, r.Next(r.First(0)).Value, 0)
	}
}

func TestPageEndsEarly(t *testing.T) {
	f := NewFilter([]string{"q"})
	read := func(ctx context.Context, src io.Reader, samples int, limit int64, more func(int) bool) error {
		r := NewReader(nil)
		r.Reset(f, samples, more)
		_, err := r.Read(ctx, src, limit)
		return err
	}
	many := func() io.Reader { return endless([]byte("q{a=\"1\"} 1\n")) }
	require.ErrorIs(t, read(t.Context(), many(), 100, 1<<40, always), ErrSeries)
	require.ErrorIs(t, read(t.Context(), endless([]byte("x 1\n")), 100, 1<<20, always), ErrLong)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, read(ctx, many(), 100, 1<<40, always), context.Canceled)
	failed := errors.New("failed")
	require.ErrorIs(t, read(t.Context(), iotest.ErrReader(failed), 100, 1<<40, always), failed)
	require.NoError(t, read(t.Context(), strings.NewReader("q 1\nx 1\n"), 1, 8, always))
	require.ErrorIs(t, read(t.Context(), strings.NewReader("q 1\nx 1\n"), 1, 7, always), ErrLong)
	// Distinct series: memory is asked for in advance, and refused or bounded.
	asked := 0
	err := read(t.Context(), &numbered{}, 1<<30, 1<<40, func(n int) bool { asked += n; return asked < 1<<20 })
	require.ErrorIs(t, err, ErrMemory)
	require.LessOrEqual(t, asked, 1<<20+grain)
	asked = 0
	err = read(t.Context(), &numbered{}, 1<<30, 1<<40, func(n int) bool { asked += n; return true })
	require.ErrorIs(t, err, ErrSeries)
	require.LessOrEqual(t, asked, Most)
}

func TestReaderGivesBackWhatIsLarge(t *testing.T) {
	r := NewReader(nil)
	require.ErrorIs(t, readText(r, NewFilter([]string{"q"}), strings.Repeat("q{a=\"1\"} 1\n", 1001)), ErrSeries)
	require.NotZero(t, cap(r.series))
	r.Release()
	require.NotZero(t, cap(r.series), "a small table is kept")
	text := make([]byte, 17_000)
	n, _ := (&numbered{}).Read(text)
	require.NoError(t, readText(r, NewFilter([]string{"q"}), string(text[:n])))
	r.Release()
	require.Zero(t, cap(r.series)+cap(r.keys)+cap(r.index)+cap(r.buckets))
}

// endless repeats a line.
func endless(line []byte) io.Reader {
	block := bytes.Repeat(line, 1000)
	return readerFunc(func(p []byte) (int, error) {
		return copy(p, block[:len(block)/len(line)*len(line)]) / len(line) * len(line), nil
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// numbered is a page of series that are all different.
type numbered struct{ next int }

func (n *numbered) Read(p []byte) (int, error) {
	used := 0
	for used+32 < len(p) {
		used += copy(p[used:], "q{a=\"")
		for i := range 8 {
			p[used] = byte('a' + n.next>>(4*i)&15)
			used++
		}
		used += copy(p[used:], "\"} 1\n")
		n.next++
	}
	return used, nil
}
