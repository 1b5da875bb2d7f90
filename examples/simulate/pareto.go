package main

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg/draw"
)

// paretoPicture draws cost against service: every line of the table, and curves over the policies' main knobs.
func (c *comparison) paretoPicture() *picture {
	const width, height = 1200, 560
	pic := newPicture("pareto", width, height, "Cost against service",
		fmt.Sprintf("Each policy by its replica-hours and the share of requests within the SLO. On the front, which nothing beats in both: %s.", c.frontNames()))
	least, most := math.Inf(1), 0.0
	for _, l := range slices.Concat(c.lines, c.sweep) {
		least, most = min(least, l.summary.hours.Mean), max(most, l.summary.hours.Mean)
	}
	margin := (most - least) * 0.04
	const last = 4
	p := &panel{
		picture: pic, left: 66, right: width - 20, bottom: 44, top: height - 24,
		x: linear(max(0, least-margin), most+margin), y: nines(last),
	}
	p.yAxis("requests within both SLOs, each nine at one distance",
		tick{0, "0 %"}, tick{0.5, "50 %"}, tick{0.9, "90 %"}, tick{0.95, "95 %"}, tick{0.99, "99 %"}, tick{0.999, "99.9 %"}, tick{1, "≥ 99.99 %"})
	p.xAxis("replica-hours", ticksWithin(max(0, least-margin), most+margin, niceStep(most-least, 10))...)
	asked := p.py(c.alpha)
	p.stroke(black(), 1, dashed(), at(p.left, asked), at(p.right, asked))
	p.write(p.right, asked+3, -1, 1, 11, black(), goal(c.alpha)+" % is asked for")

	labels := &labels{panel: p}
	c.curves(p, labels)
	for _, l := range c.lines {
		p.bars(&l.summary)
	}
	c.drawFront(p)
	for _, l := range c.lines {
		x, y := p.px(l.summary.hours.Mean), p.py(l.summary.attained.Mean)
		labels.avoid(x, y, 6)
		fill := l.colour()
		p.dot(fill, 5, x, y)
		if c.onFront(l) {
			p.DrawGlyphNoClip(draw.GlyphStyle{Color: black(), Radius: 7.5, Shape: draw.RingGlyph{}}, at(x, y))
		}
	}
	for _, l := range c.lines {
		labels.place(p.px(l.summary.hours.Mean), p.py(l.summary.attained.Mean), 12, black(), l.name)
	}
	c.knobLabels(p, labels)
	return pic
}

// colour tells the sorts of lines apart.
func (l *line) colour() color.Color {
	switch l.sort {
	case ofOracle:
		return black()
	case ofReactive, ofLimit:
		return grey()
	case ofStatic:
		return orange()
	case ofReference:
		return purple()
	case ofIncumbent:
		return vermillion()
	case ofPolicy:
	}
	return blue()
}

// bars draws the confidence intervals of a line.
func (p *panel) bars(s *summary) {
	c := color.RGBA{0xbb, 0xbb, 0xbb, 0xff}
	x, y := p.px(s.hours.Mean), p.py(s.attained.Mean)
	clampX := func(v float64) float64 { return min(max(p.px(v), p.left), p.right) }
	p.stroke(c, 1, nil, at(clampX(s.hours.Mean-s.hours.Half), y), at(clampX(s.hours.Mean+s.hours.Half), y))
	p.stroke(c, 1, nil, at(x, p.py(max(0, s.attained.Mean-s.attained.Half))), at(x, p.py(min(1, s.attained.Mean+s.attained.Half))))
}

// families returns the names of the sweep's curves.
func (c *comparison) families() []string {
	var names []string
	for _, l := range c.sweep {
		if f := l.family; !slices.Contains(names, f) {
			names = append(names, f)
		}
	}
	return names
}

// points returns those of a curve: the sweep's, and the line of the table that is one of them, in order of the knob.
func (c *comparison) points(family string) []*line {
	var points []*line
	for _, l := range c.sweep {
		if l.family == family {
			points = append(points, l)
		}
	}
	for _, l := range c.lines {
		if l.name == family {
			points = append(points, l)
		}
	}
	slices.SortStableFunc(points, func(a, b *line) int { return cmp.Compare(a.turned, b.turned) })
	return points
}

// curves draws what the main knobs do.
func (c *comparison) curves(p *panel, labels *labels) {
	for _, family := range c.families() {
		points := c.points(family)
		tone := sky()
		if points[0].sort == ofStatic {
			tone = orange()
		}
		var line []point
		for _, l := range points {
			x, y := l.summary.hours.Mean, l.summary.attained.Mean
			line = append(line, point{x, y})
			p.dot(tone, 2.5, p.px(x), p.py(y))
			labels.avoid(p.px(x), p.py(y), 3)
		}
		p.curve(line, tone, 0.8)
	}
}

// knobLabels names the points of the curves where there is room.
func (c *comparison) knobLabels(p *panel, labels *labels) {
	for _, l := range c.sweep {
		if l.sort != ofStatic {
			labels.ifRoom(p.px(l.summary.hours.Mean), p.py(l.summary.attained.Mean), 11, grey(), l.knob)
		}
	}
}

// onFront reports whether nothing that can be run is both cheaper and better. Oracles know the future and do not count.
func (c *comparison) onFront(l *line) bool {
	if l.sort == ofOracle || l.sort == ofReactive {
		return false
	}
	a := &l.summary
	for _, o := range c.lines {
		if o.sort == ofOracle || o.sort == ofReactive {
			continue
		}
		b := &o.summary
		if b.hours.Mean <= a.hours.Mean && b.attained.Mean >= a.attained.Mean &&
			(b.hours.Mean < a.hours.Mean || b.attained.Mean > a.attained.Mean) {
			return false
		}
	}
	return true
}

// front returns the lines on the front, the cheapest first.
func (c *comparison) front() []*line {
	front := slices.DeleteFunc(slices.Clone(c.lines), func(l *line) bool { return !c.onFront(l) })
	slices.SortStableFunc(front, func(a, b *line) int { return cmp.Compare(a.summary.hours.Mean, b.summary.hours.Mean) })
	return front
}

func (c *comparison) frontNames() string {
	return strings.Join(each(c.front(), func(l *line) string { return l.name }), ", ")
}

// drawFront draws the front in steps: what is below and right of it is beaten.
func (c *comparison) drawFront(p *panel) {
	points := each(c.front(), func(l *line) point { return point{l.summary.hours.Mean, l.summary.attained.Mean} })
	p.stroke(grey(), 1.2, nil, p.stairs(points)...)
}
