package page

import (
	"bytes"
	"unicode/utf8"
)

// owns reports whether expfmt gives a sample of this part to the family, given the types on the page so far.
func (t *table) owns(p part) bool {
	return !t.other[p] && (t.typ >= Histogram || t.typ == Summary && p != bucketOf)
}

// comment handles TYPE and HELP lines; other comments mean nothing.
func (r *Reader) comment(line []byte) {
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
		if name, rest, whole = unquote(r.name[:0], rest); !whole {
			return
		}
		r.name = name
	}
	for i := range r.tables {
		t := &r.tables[i]
		p, after := r.filter.part(name, whole, r.filter.families[i].name)
		if whole {
			after = rest
		}
		switch {
		case p == stranger:
		case len(after) == 0:
			// A name alone: expfmt stops before it looks at it.
		case p == itself && isType:
			if wrong := t.typeLine(after); wrong != "" {
				r.fail(i, line, wrong)
			}
		case p != itself && blank(after[0]) && !t.owns(p):
			t.other[p] = true
		}
	}
}

// typeLine notes the type of a family. Only the first line that has a type counts.
func (t *table) typeLine(after []byte) (wrong string) {
	if !blank(after[0]) {
		return "a type for a name that is none"
	}
	typ := trimBlanks(after)
	if len(typ) == 0 || t.typed {
		return ""
	}
	t.typed = true
	if t.samples > 0 {
		return "a type after samples"
	}
	typ = asRead(typ)
	for known := Untyped; known <= GaugeHistogram; known++ {
		if bytes.EqualFold(typ, []byte(known.String())) {
			t.typ = known
			return ""
		}
	}
	if bytes.EqualFold(typ, []byte("gaugehistogram")) {
		t.typ = GaugeHistogram
		return ""
	}
	return "a type that is not known"
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

// braces handles a line whose name is inside of the braces: {"name",a="b"} 1, or {name,a="b"} 1.
func (r *Reader) braces(line []byte) {
	inner := trimBlanks(line[1:])
	var name, rest []byte
	whole := true
	if len(inner) > 0 && inner[0] == '"' {
		if name, rest, whole = unquote(r.name[:0], inner); whole {
			r.name = name
		}
	} else {
		n := 0
		for n < len(inner) && r.filter.word[inner[n]] && inner[n] != ':' && inner[n] != '"' {
			n++
		}
		name, rest = inner[:n], inner[n:]
	}
	rest = trimBlanks(rest)
	if !whole || len(name) == 0 || len(rest) == 0 || rest[0] != ',' && rest[0] != '}' {
		r.suspect(line, "a line in braces whose name cannot be told")
		return
	}
	r.sample(line, name, rest[1:], true, rest[0] == ',')
}

// unquote appends the quoted text that b begins with to into. It follows expfmt: \\, \n and \" are the escapes.
func unquote(into, b []byte) (text, rest []byte, ok bool) {
	for i := 1; i < len(b); i++ {
		switch c := b[i]; c {
		case '"':
			return into, b[i+1:], true
		case '\\':
			i++
			if i == len(b) {
				return into, b, false
			}
			switch b[i] {
			case '\\', '"':
				into = append(into, b[i])
			case 'n':
				into = append(into, '\n')
			default:
				return into, b, false
			}
		default:
			into = append(into, c)
		}
	}
	return into, b, false
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

func trimBlanks(b []byte) []byte {
	for len(b) > 0 && blank(b[0]) {
		b = b[1:]
	}
	return b
}
