package page

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// lines reads lines, of which the last may lack its newline.
func (r *Reader) lines(page []byte) {
	for len(page) > 0 && r.fatal == nil {
		line := page
		if n := bytes.IndexByte(page, '\n'); n >= 0 {
			line, page = page[:n], page[n+1:]
		} else {
			page = nil
		}
		if len(line) > 0 && r.filter.class[line[0]] != ignored {
			r.line(line)
		}
	}
}

func (r *Reader) line(line []byte) {
	if line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	if line = trimBlanks(line); len(line) == 0 {
		return
	}
	switch line[0] {
	case '#':
		r.comment(line)
	case '{':
		r.braces(line)
	case '"':
		if name, rest, ok := unquote(r.name[:0], line); ok {
			r.name = name
			r.sample(line, name, rest, true, false)
		} else {
			r.suspect(line, "a quoted name that does not end")
		}
	default:
		if c := r.filter.class[line[0]]; c == damaged {
			r.suspect(line, "a line that begins like no other")
		} else if c == examined {
			r.sample(line, line, nil, false, false)
		}
	}
}

// sample takes a line for every family that its name belongs to. With whole, name is the name and rest what follows;
// else the name is the beginning of name. This is the inner loop: one byte decides for nearly every line that it is not
// wanted.
func (r *Reader) sample(line, name, rest []byte, whole, inBraces bool) {
	f := r.filter
	for i := range f.families {
		w := &f.families[i]
		if n := len(w.name); n < len(name) && !whole {
			if c := name[n]; c != '_' && f.word[c] {
				continue
			}
		}
		p, after := f.part(name, whole, w.name)
		if p == stranger {
			continue
		}
		t := &r.tables[i]
		if p != itself && !t.owns(p) {
			t.other[p] = true
			continue
		}
		if whole {
			after = rest
		}
		if t.samples++; t.samples > r.limit {
			r.fatal = fmt.Errorf("%w: of %s there are more than %d samples", ErrSeries, w.name, r.limit)
			return
		}
		switch {
		case t.err != nil:
		case !w.bare && !whole:
			r.fail(i, line, "a name that needs quotes")
		default:
			if wrong := r.read(i, p, after, inBraces); wrong != "" {
				r.fail(i, line, wrong)
			}
		}
	}
}

// read reads what follows the name of a sample, and says what is wrong with it.
func (r *Reader) read(i int, p part, b []byte, inBraces bool) (wrong string) {
	t := &r.tables[i]
	own := ""
	switch {
	case t.typ == Summary:
		own = "quantile"
	case t.typ >= Histogram:
		own = "le"
	}
	b = trimBlanks(b)
	r.pairs = r.pairs[:0]
	r.text = r.text[:0]
	if inBraces || len(b) > 0 && b[0] == '{' {
		if !inBraces {
			b = b[1:]
		}
		if b, wrong = r.labels(b); wrong != "" {
			return wrong
		}
		b = trimBlanks(b)
	}
	bound, bounded, wrong := r.canonical(own)
	if wrong != "" {
		return wrong
	}
	value, at, timed, wrong := number(b)
	switch {
	case wrong != "":
		return wrong
	case bounded && p != bucketOf && (t.typ != Summary || p != itself):
		return "a label that this sample cannot have"
	case t.typ >= Summary && (p == bucketOf || p == countOf) && value < 0:
		return "a negative count"
	case t.typ == Summary && p == countOf && value != math.Trunc(value):
		return "a count that is no whole number"
	}
	s := r.add(i)
	if s == nil {
		return ""
	}
	switch {
	case p == sumOf:
		s.Twice = s.Twice || s.HasSum
		s.Sum, s.HasSum = value, true
	case p == countOf:
		s.Twice = s.Twice || s.HasCount
		s.Count, s.HasCount = value, true
	case p == bucketOf && bounded:
		r.addBucket(s, bound, value)
	case t.typ < Summary:
		s.Twice = s.Twice || s.HasValue
		s.Value, s.HasValue = value, true
	}
	if timed && (!s.Timed || at < s.At) {
		s.At, s.Timed = at, true
	}
	return ""
}

// A pair is one label as it was read.
type pair struct{ name, value []byte }

// labels reads labels up to the closing brace into r.pairs, in the order of their names.
func (r *Reader) labels(b []byte) (rest []byte, wrong string) {
	for {
		if b = trimBlanks(b); len(b) == 0 {
			return b, "labels that do not end"
		}
		if b[0] == '}' {
			return b[1:], ""
		}
		var p pair
		if b[0] == '"' {
			from, ok := len(r.text), false
			if r.text, b, ok = unquote(r.text, b); !ok {
				return b, "a label whose name does not end"
			}
			p.name = r.text[from:len(r.text):len(r.text)]
			if !utf8.Valid(p.name) {
				return b, "a label whose name is not UTF-8"
			}
		} else {
			n := 0
			for n < len(b) && r.filter.word[b[n]] && b[n] != ':' && b[n] != '"' {
				n++
			}
			p.name, b = b[:n:n], b[n:]
			if n > 0 && p.name[0] >= '0' && p.name[0] <= '9' {
				return b, "a label whose name begins with a digit"
			}
		}
		if b = trimBlanks(b); len(b) == 0 || b[0] != '=' || len(p.name) == 0 {
			return b, "a label without name or value"
		}
		if b = trimBlanks(b[1:]); len(b) == 0 || b[0] != '"' {
			return b, "a label without quotes"
		}
		if n := bytes.IndexByte(b[1:], '"') + 1; n > 0 && bytes.IndexByte(b[1:n], '\\') < 0 {
			p.value, b = b[1:n:n], b[n+1:]
		} else {
			from, ok := len(r.text), false
			if r.text, b, ok = unquote(r.text, b); !ok {
				return b, "a label whose value does not end"
			}
			p.value = r.text[from:len(r.text):len(r.text)]
		}
		if !utf8.Valid(p.value) {
			return b, "a label that is not UTF-8"
		}
		if wrong := r.insert(p); wrong != "" {
			return b, wrong
		}
		if b = trimBlanks(b); len(b) == 0 || b[0] != ',' && b[0] != '}' {
			return b, "labels without a comma"
		}
		if b[0] == ',' {
			b = b[1:]
		}
	}
}

func (r *Reader) insert(p pair) (wrong string) {
	if string(p.name) == "__name__" {
		return "a reserved label"
	}
	if len(r.pairs) == maxLabels {
		return "more labels than 100"
	}
	i := len(r.pairs)
	for ; i > 0; i-- {
		c := bytes.Compare(r.pairs[i-1].name, p.name)
		if c == 0 {
			return "a label twice"
		}
		if c < 0 {
			break
		}
	}
	r.pairs = append(r.pairs, pair{})
	copy(r.pairs[i+1:], r.pairs[i:])
	r.pairs[i] = p
	return ""
}

// maxLabels bounds the labels of a line, as they are kept in order by insertion.
const maxLabels = 100

// canonical makes the key of r.pairs. The label that belongs to the type, le or quantile, is no part of it.
func (r *Reader) canonical(own string) (bound float64, bounded bool, wrong string) {
	r.key = r.key[:0]
	for _, p := range r.pairs {
		if own != "" && string(p.name) == own {
			v, ok := float(p.value)
			if !ok || math.IsNaN(v) {
				return 0, false, "a bound that is no number"
			}
			bound, bounded = v, true
			continue
		}
		if len(p.value) > 0 {
			r.key = append(append(r.key, p.name...), separator)
			r.key = append(append(r.key, p.value...), separator)
		}
	}
	return bound, bounded, ""
}

// number reads a value and a timestamp, if there is one.
func number(b []byte) (value float64, at int64, timed bool, wrong string) {
	n := 0
	for n < len(b) && !blank(b[n]) {
		n++
	}
	value, ok := float(b[:n])
	if !ok {
		return 0, 0, false, "a value that is no number"
	}
	if n == len(b) {
		return value, 0, false, ""
	}
	at, err := strconv.ParseInt(string(trimBlanks(b[n:])), 10, 64)
	if err != nil {
		return 0, 0, false, "a timestamp that is no whole number"
	}
	return value, at, true, ""
}

// float is strconv.ParseFloat of the formats before Go 1.13, as expfmt has it. Whole numbers, with ".0" as Python writes
// them, are read here.
func float(b []byte) (float64, bool) {
	n, whole := 0, 0
	for ; n < len(b) && n < 15 && b[n] >= '0' && b[n] <= '9'; n++ {
		whole = 10*whole + int(b[n]-'0')
	}
	if n > 0 && (n == len(b) || n+2 == len(b) && b[n] == '.' && b[n+1] == '0') {
		return float64(whole), true
	}
	if bytes.ContainsAny(b, "pP_") {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil
}
