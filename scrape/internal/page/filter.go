package page

import "slices"

// A Filter knows the families that are wanted. It is not changed by use.
//
// What a [Reader] takes of them is what expfmt would have read, with these exceptions, each of which has a test:
//
//   - HELP lines and every TYPE line of a family but its first are dropped: expfmt fails on a second one.
//   - A '\r' at the end of a line is dropped: expfmt fails on it.
//   - Damage in the line of a family that is not wanted is not seen: expfmt gives up a page for one bad line anywhere.
//   - A family typed as a histogram or summary takes the samples name_sum, name_count (and name_bucket) from the
//     families of those names. The reader knows that for wanted families only: a wanted h_count is read, as untyped,
//     even where expfmt would have made it part of a histogram h.
//   - A name in braces, {"name",a="b"} 1, is a name, where expfmt panics or mixes up series if a histogram is involved.
//     There the name comes first, as the format says: a line in braces that mentions a wanted name elsewhere is damage.
//   - A quote inside of a bare name, na"me" 1, which expfmt accepts, makes it another name; in braces it is damage if the
//     line mentions a wanted name.
//   - Of a histogram or summary, le or quantile at any other sample than a bucket or a quantile is damage, as are labels
//     le="NaN" and the count of a summary that is no whole number: expfmt reads them as something else. To a histogram
//     without a count whose buckets are no whole numbers it gives a count of 0.
type Filter struct {
	families []family
	class    [256]class // of the byte that a line begins with
	word     [256]bool  // bytes that continue a bare name
}

// A family is a wanted name.
type family struct {
	name string
	bare bool // it can be written without quotes
}

// A class says what a line may be by its first byte.
type class uint8

const (
	damaged  class = iota // nothing begins with this: a byte order mark, a NUL, a space that is not one in ASCII
	ignored               // a name that is not wanted
	examined              // all else
)

// Type is the type of a family.
type Type uint8

// The types.
const (
	Untyped Type = iota
	Gauge
	Counter
	Summary
	Histogram
	GaugeHistogram
)

// String returns the type in lower case.
func (t Type) String() string {
	return [...]string{"untyped", "gauge", "counter", "summary", "histogram", "gauge_histogram"}[t]
}

// A part is what a name is to a family: the family's own name, one of its parts, or neither.
type part uint8

const (
	stranger part = iota
	itself
	bucketOf
	sumOf
	countOf
	parts
)

// NewFilter returns a filter for names, none of which is empty. Names may repeat.
func NewFilter(names []string) *Filter {
	f := &Filter{}
	for c := range 256 {
		b := byte(c)
		start := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == ':'
		f.word[c] = start || b >= '0' && b <= '9' || b == '"'
		if start {
			f.class[c] = ignored
		}
	}
	for _, c := range []byte("# \t{\"") {
		f.class[c] = examined
	}
	for _, n := range names {
		if f.Index(n) >= 0 {
			continue
		}
		w := family{name: n, bare: f.class[n[0]] != damaged && n[0] != '"'}
		for i := range len(n) {
			w.bare = w.bare && f.word[n[i]] && n[i] != '"'
		}
		f.families = append(f.families, w)
	}
	for _, w := range f.families {
		if w.bare {
			f.class[w.name[0]] = examined
		}
	}
	return f
}

// Index returns the number of a name, by which a [Reader] knows it; -1 if it is not wanted.
func (f *Filter) Index(name string) int {
	return slices.IndexFunc(f.families, func(w family) bool { return w.name == name })
}

// part says what the name at the beginning of b is to the family, and what follows the name. With whole, b is nothing
// but the name. A name ends where a byte
// can no longer continue it, and not only at '{', ' ' or a tab: expfmt reads name+1 as a sample, and whatever else
// follows a wanted name is damage that the parser must see.
func (f *Filter) part(b []byte, whole bool, name string) (part, []byte) {
	n := len(name)
	if len(b) < n || string(b[:n]) != name {
		return stranger, nil
	}
	rest := b[n:]
	if f.ends(rest, whole) {
		return itself, rest
	}
	if rest[0] == '_' {
		for r, suffix := range [parts]string{bucketOf: "_bucket", sumOf: "_sum", countOf: "_count"} {
			if m := len(suffix); m > 0 && len(rest) >= m && string(rest[:m]) == suffix && f.ends(rest[m:], whole) {
				return part(r), rest[m:]
			}
		}
	}
	return stranger, nil
}

func (f *Filter) ends(rest []byte, whole bool) bool {
	return len(rest) == 0 || !whole && !f.word[rest[0]]
}
