package main

import (
	"image/color"
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot/vg"
)

// A panel is a rectangle of a picture with two scales.
type panel struct {
	*picture

	left, right, bottom, top float64 // in the picture
	x, y                     scale
}

// A scale takes values to [0, 1].
type scale func(float64) float64

func linear(from, to float64) scale {
	if to == from {
		to = from + 1
	}
	return func(v float64) float64 { return (v - from) / (to - from) }
}

// logarithmic takes values from one above 0 to another.
func logarithmic(from, to float64) scale {
	return func(v float64) float64 { return math.Log(max(v, from)/from) / math.Log(to/from) }
}

// crowd takes counts from 0 to a highest one, with room for small ones: a logarithm that begins at 0.
func crowd(to float64) scale {
	return func(v float64) float64 { return math.Log1p(v) / math.Log1p(max(to, 1)) }
}

// nines takes shares: 0.9, 0.99 and 0.999 are at one distance, up to a last one.
func nines(last float64) scale {
	return func(share float64) float64 { return min(-math.Log10(max(1-share, 1e-12)), last) / last }
}

func (p *panel) px(x float64) float64 { return p.left + p.x(x)*(p.right-p.left) }
func (p *panel) py(y float64) float64 { return p.bottom + p.y(y)*(p.top-p.bottom) }

// A tick is a place on an axis and its label.
type tick struct {
	value float64
	label string
}

// yAxis draws lines across the panel with their labels at its left.
func (p *panel) yAxis(name string, ticks ...tick) {
	for _, t := range ticks {
		y := p.py(t.value)
		p.stroke(pale(), 1, nil, at(p.left, y), at(p.right, y))
		p.write(p.left-6, y, -1, 0, 11, grey(), t.label)
	}
	if name != "" {
		p.write(p.left, p.top+5, 1, 1, 11, grey(), name)
	}
}

// xAxis draws the line at the panel's foot with labels below.
func (p *panel) xAxis(name string, ticks ...tick) {
	p.stroke(grey(), 1, nil, at(p.left, p.bottom), at(p.right, p.bottom))
	for _, t := range ticks {
		x := p.px(t.value)
		p.stroke(grey(), 1, nil, at(x, p.bottom), at(x, p.bottom-4))
		p.write(x, p.bottom-6, 0, -1, 11, grey(), t.label)
	}
	if name != "" {
		p.write(p.right, p.bottom-22, -1, -1, 11, grey(), name)
	}
}

// A point is a value at a time.
type point struct{ x, y float64 }

// steps draws values that stay until the next one. Points that repeat the value before are left out.
func (p *panel) steps(points []point, c color.Color, width float64, dashes []vg.Length) {
	p.stroke(c, width, dashes, p.stairs(points)...)
}

// area fills what is below values that stay until the next one.
func (p *panel) area(points []point, c color.Color) {
	stairs := p.stairs(points)
	if len(stairs) == 0 {
		return
	}
	floor := vg.Length(p.bottom)
	stairs = append(stairs, vg.Point{X: stairs[len(stairs)-1].X, Y: floor}, vg.Point{X: stairs[0].X, Y: floor})
	p.FillPolygon(c, stairs)
}

func (p *panel) stairs(points []point) []vg.Point {
	var out []vg.Point
	for i, v := range points {
		if i > 0 && i < len(points)-1 && v.y == points[i-1].y {
			continue
		}
		x, y := p.px(v.x), p.py(v.y)
		if n := len(out); n > 0 && out[n-1].Y != vg.Length(y) {
			out = append(out, vg.Point{X: vg.Length(x), Y: out[n-1].Y})
		}
		out = append(out, at(x, y))
	}
	return out
}

// curve draws straight lines between values.
func (p *panel) curve(points []point, c color.Color, width float64) {
	line := make([]vg.Point, 0, len(points))
	for _, v := range points {
		line = append(line, at(p.px(v.x), p.py(v.y)))
	}
	p.stroke(c, width, nil, line...)
}

// timeTicks returns ticks for a length of time, and their unit.
func timeTicks(length time.Duration) (unit string, perUnit time.Duration, ticks []tick) {
	unit, perUnit = "minutes", time.Minute
	if length > 3*time.Hour {
		unit, perUnit = "hours", time.Hour
	}
	if length > 4*24*time.Hour {
		unit, perUnit = "days", 24*time.Hour
	}
	n := float64(length) / float64(perUnit)
	return unit, perUnit, ticksWithin(0, n*1.0001, niceStep(n, 7))
}

// countTicks returns ticks from 0 to a number of counts, about so many.
func countTicks(to float64, about int) []tick {
	return ticksWithin(0, to*1.0001, max(1, niceStep(to, about)))
}

// ticksWithin returns ticks at the multiples of a nice step, with as many digits as the step has.
func ticksWithin(from, to, step float64) (ticks []tick) {
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	for i := math.Ceil(from / step); i*step <= to; i++ {
		ticks = append(ticks, tick{i * step, strconv.FormatFloat(i*step, 'f', digits, 64)})
	}
	return ticks
}

// niceStep returns 1, 2 or 5 times a power of ten, so that about so many make up a length.
func niceStep(length float64, about int) float64 {
	if length <= 0 {
		return 1
	}
	raw := length / float64(about)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*power {
			return m * power
		}
	}
	return 10 * power
}
