package scrape

import (
	"bytes"
	"unicode/utf8"
)

// A filter copies the lines of wanted families out of a page, so that the parser never sees the rest: a page of 64 KB
// keeps 200 bytes for one gauge. It is also what confines damage: expfmt gives up a page for one bad line anywhere.
//
// What it keeps is what expfmt would have read of the wanted families, with these exceptions, each of which has a
// test:
//
//   - HELP lines and every TYPE line of a family but its first are dropped: expfmt fails on a second one.
//   - A '\r' at the end of a line is dropped: expfmt fails on it.
//   - A family typed as a histogram or summary takes the samples name_sum, name_count (and name_bucket) from the
//     families of those names. The filter knows that for wanted families only: a wanted h_count is read, as untyped,
//     even where expfmt would have made it part of an unwanted histogram h.
//   - A name in braces, {"name",a="b"} 1, is rewritten as "name"{a="b"} 1. expfmt panics on the former, or mixes up
//     series, where a histogram is involved.
//   - In braces the name comes first, as the format says. If a line in braces mentions a wanted name elsewhere, the
//     page is damaged.
//   - A quote inside of a bare name, na"me" 1, which expfmt accepts, makes it another name; in braces it is damage if the
//     line mentions a wanted name.
//
// A filter belongs to one goroutine. It allocates only to grow its buffers.
type filter struct {
	families []family
	first    [256]bool // bytes that a line of interest begins with
	word     [256]bool // bytes that continue a bare name
	out      []byte
	name     []byte // the unquoted form of a quoted name
	damage   []byte // a line that may or may not belong to a wanted family; of the current page
}

// A family is a wanted name and what the page has said of it so far.
type family struct {
	name  string
	typed pageType
	// other[r] says that the page has made name + suffix a family of its own before it typed name as a histogram or
	// summary. From then on expfmt gives that suffix to the other family.
	other [roles]bool
}

// pageType is what the filter needs to know of a TYPE line.
type pageType uint8

const (
	untyped pageType = iota
	scalar
	summary
	histogram
)

// A role is what a name is to a family: the family's own name, one of its parts, or neither.
type role uint8

const (
	stranger role = iota
	itself
	bucketOf
	sumOf
	countOf
	roles
)

// newFilter returns a filter for names. Names may repeat.
func newFilter(names []string) *filter {
	f := &filter{}
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			f.families = append(f.families, family{name: n})
			f.first[n[0]] = true
		}
	}
	for _, c := range []byte("# \t{\"") {
		f.first[c] = true
	}
	for c := range 256 {
		b := byte(c)
		f.word[c] = b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == ':' || b == '"'
	}
	return f
}

// keep returns the lines of wanted families, each with its newline. The result is good until the next call. A last
// line without a newline is taken as complete; whether it is, is for the caller to know.
func (f *filter) keep(page []byte) []byte {
	for i := range f.families {
		f.families[i] = family{name: f.families[i].name}
	}
	f.out, f.damage = f.out[:0], nil
	for len(page) > 0 {
		line := page
		if n := bytes.IndexByte(page, '\n'); n >= 0 {
			line, page = page[:n], page[n+1:]
		} else {
			page = nil
		}
		if len(line) == 0 || !f.first[line[0]] {
			continue
		}
		f.line(line)
	}
	return f.out
}

func (f *filter) line(line []byte) {
	if line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	if line = trimBlanks(line); len(line) == 0 {
		return
	}
	switch line[0] {
	case '#':
		f.comment(line)
	case '{':
		f.braces(line)
	case '"':
		f.quoted(line)
	default:
		if f.sample(line, false) {
			f.write(line)
		}
	}
}

func (f *filter) write(line []byte) {
	f.out = append(f.out, line...)
	f.out = append(f.out, '\n')
}

// sample reports whether the name at the beginning of b belongs to a wanted family. With whole, b is nothing but the
// name. This is the inner loop: one byte decides for nearly every line that it is not wanted.
func (f *filter) sample(b []byte, whole bool) bool {
	wanted := false
	for i := range f.families {
		w := &f.families[i]
		if n := len(w.name); n < len(b) {
			if c := b[n]; c != '_' && f.word[c] && !whole {
				continue
			}
		}
		r, _ := f.role(b, whole, w.name)
		switch {
		case r == stranger:
		case r == itself, w.owns(r):
			wanted = true
		default:
			w.other[r] = true
		}
	}
	return wanted
}

// owns reports whether expfmt gives a sample of this role to the family, given the types on the page so far.
func (w *family) owns(r role) bool {
	return !w.other[r] && (w.typed == histogram || w.typed == summary && r != bucketOf)
}

// role says what the name at the beginning of b is to the family, and what follows the name. A name ends where a byte
// can no longer continue it, and not only at '{', ' ' or a tab: expfmt reads name+1 as a sample, and whatever else
// follows a wanted name is damage that the parser must see.
func (f *filter) role(b []byte, whole bool, name string) (role, []byte) {
	n := len(name)
	if len(b) < n || string(b[:n]) != name {
		return stranger, nil
	}
	rest := b[n:]
	if f.ends(rest, whole) {
		return itself, rest
	}
	if rest[0] == '_' {
		for r, suffix := range [roles]string{bucketOf: "_bucket", sumOf: "_sum", countOf: "_count"} {
			if m := len(suffix); m > 0 && len(rest) >= m && string(rest[:m]) == suffix && f.ends(rest[m:], whole) {
				return role(r), rest[m:]
			}
		}
	}
	return stranger, nil
}

func (f *filter) ends(rest []byte, whole bool) bool {
	return len(rest) == 0 || !whole && !f.word[rest[0]]
}

// comment handles TYPE and HELP lines; other comments mean nothing.
func (f *filter) comment(line []byte) {
	rest := trimBlanks(line[1:])
	if len(rest) < 5 || !blank(rest[4]) {
		return
	}
	isType := string(rest[:4]) == "TYPE"
	if !isType && string(rest[:4]) != "HELP" {
		return
	}
	if rest = trimBlanks(rest[5:]); len(rest) == 0 {
		return
	}
	name, whole := rest, false
	if rest[0] == '"' {
		if name, rest, whole = f.unquote(rest); !whole {
			return
		}
	}
	keep := false
	for i := range f.families {
		w := &f.families[i]
		r, after := f.role(name, whole, w.name)
		if whole {
			after = rest
		}
		switch {
		case r == stranger:
		case len(after) == 0:
			// A name alone: expfmt stops before it looks at it.
		case r == itself:
			keep = keep || isType && w.typeLine(after)
		case blank(after[0]) && !w.owns(r):
			w.other[r] = true
		}
	}
	if keep {
		f.write(line)
	}
}

// typeLine notes the type of a family and reports whether the parser must see the line: the first that has a type, or
// damage after the name.
func (w *family) typeLine(after []byte) bool {
	if !blank(after[0]) {
		return true
	}
	typ := trimBlanks(after)
	if len(typ) == 0 || w.typed != untyped {
		return false
	}
	w.typed = scalar
	switch typ = asRead(typ); {
	case bytes.EqualFold(typ, []byte("summary")):
		w.typed = summary
	case bytes.EqualFold(typ, []byte("histogram")), bytes.EqualFold(typ, []byte("gaugehistogram")),
		bytes.EqualFold(typ, []byte("gauge_histogram")):
		w.typed = histogram
	}
	return true
}

// asRead returns a type as expfmt reads it, but for the case of ASCII letters: without backslashes, and with the upper case
// of others, of which one is an I.
func asRead(typ []byte) []byte {
	for _, c := range typ {
		if c == '\\' || c >= utf8.RuneSelf {
			return bytes.ToUpper(bytes.ReplaceAll(typ, []byte{'\\'}, nil))
		}
	}
	return typ
}

// quoted handles a line that begins with a quoted name: "name"{a="b"} 1.
func (f *filter) quoted(line []byte) {
	name, _, ok := f.unquote(line)
	switch {
	case !ok:
		f.suspect(line)
	case f.sample(name, true):
		f.write(line)
	}
}

// braces handles a line whose name is inside of the braces: {"name",a="b"} 1, or {name,a="b"} 1.
func (f *filter) braces(line []byte) {
	inner := trimBlanks(line[1:])
	var name, rest []byte
	whole := true
	if len(inner) > 0 && inner[0] == '"' {
		name, rest, whole = f.unquote(inner)
	} else {
		n := 0
		for n < len(inner) && f.word[inner[n]] && inner[n] != ':' && inner[n] != '"' {
			n++
		}
		name, rest = inner[:n], inner[n:]
	}
	raw := inner[:len(inner)-len(rest)]
	rest = trimBlanks(rest)
	if !whole || len(name) == 0 || len(rest) == 0 || rest[0] != ',' && rest[0] != '}' {
		f.suspect(line)
		return
	}
	if !f.sample(name, true) {
		return
	}
	f.out = append(f.out, raw...)
	f.out = append(f.out, '{')
	if rest[0] == '}' {
		f.out = append(f.out, '}')
	}
	f.write(rest[1:])
}

// suspect notes a line whose name cannot be told, if it may be a wanted one.
func (f *filter) suspect(line []byte) {
	for i := range f.families {
		if f.damage == nil && bytes.Contains(line, []byte(f.families[i].name)) {
			f.damage = line
		}
	}
}

// unquote decodes the quoted name that b begins with. It follows expfmt: \\, \n and \" are the escapes.
func (f *filter) unquote(b []byte) (name, rest []byte, ok bool) {
	f.name = f.name[:0]
	for i := 1; i < len(b); i++ {
		switch c := b[i]; c {
		case '"':
			return f.name, b[i+1:], true
		case '\\':
			i++
			if i == len(b) {
				return nil, b, false
			}
			switch b[i] {
			case '\\', '"':
				f.name = append(f.name, b[i])
			case 'n':
				f.name = append(f.name, '\n')
			default:
				return nil, b, false
			}
		default:
			f.name = append(f.name, c)
		}
	}
	return nil, b, false
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	return b
}
