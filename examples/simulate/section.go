package main

import (
	"fmt"
	"io"
	"strings"
)

// A section is a table of its own below that of the policies.
type section struct {
	Title, Introduction string
	Headings            []string
	Rows                [][]string
}

func newSection(title, introduction string, headings []string, lines []*line, cells func(*line) []string) section {
	s := section{title, introduction, headings, each(lines, cells)}
	if more := unfinished(lines); more != "" {
		s.Introduction += " " + more
	}
	return s
}

// sections returns those that were asked for.
func (c *comparison) sections() (all []section) {
	if len(c.kinds) > 0 {
		all = append(all, newSection("Two kinds of replicas", c.kindsIntroduction(), kindsHeadings(), c.kinds, (*line).kindsCells))
	}
	if c.apart != nil {
		all = append(all, newSection("Prefill and decode apart", c.apart.introduction(c), apartHeadings(), c.apart.lines, (*line).apartCells))
	}
	return all
}

// sectionTables prints them.
func (c *comparison) sectionTables(out io.Writer) {
	for _, s := range c.sections() {
		fmt.Fprintf(out, "\n%s: %s\n\n", s.Title, strings.ReplaceAll(s.Introduction, ". ", ".\n"))
		printLines(out, aligned(s.Headings, s.Rows))
	}
}
