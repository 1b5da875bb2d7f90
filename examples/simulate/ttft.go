package main

import (
	"fmt"

	"gonum.org/v1/plot/vg"
)

// ttftPicture draws how the times to first token are distributed, a row for each line of the table.
func (c *comparison) ttftPicture() *picture {
	const (
		width, row  = 1200, 40
		left, right = 190, 210
		foot        = 46
	)
	n := len(c.lines)
	slo := c.world.SLO.TTFT.Seconds()
	longest := max(100, 1.2*slo) // the line is within the picture, with room for its name
	highest := 0.0
	for _, l := range c.lines {
		for _, b := range l.results[0].TTFTHistogram {
			highest, longest = max(highest, b.Share), max(longest, b.To)
		}
	}
	height := float64(foot + 26 + row*n)
	pic := newPicture("ttft", width, height, "Distribution of the time to first token",
		fmt.Sprintf("A histogram for each policy on a logarithmic axis from 10 ms on, with the SLO at %g s marked.", slo))
	p := &panel{picture: pic, left: left, right: width - right, bottom: foot, top: height - 26, x: logarithmic(0.01, longest)}
	var ticks []tick
	for _, t := range []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000} {
		if t > longest {
			break
		}
		ticks = append(ticks, tick{t, fmt.Sprintf("%g", t)})
		p.stroke(pale(), 1, nil, at(p.px(t), p.bottom), at(p.px(t), p.top))
	}
	p.xAxis("seconds, logarithmic", ticks...)
	for i, l := range c.lines {
		foot := p.top - float64(row*(i+1))
		p.stroke(pale(), 1, nil, at(p.left, foot), at(p.right, foot))
		p.write(p.left-10, foot+row/2-6, -1, 0, 12, black(), fitting(l.name, 12, left-14))
		r := &l.results[0]
		for _, b := range r.TTFTHistogram {
			x0, x1 := p.px(b.From), p.px(b.To)
			if b.To <= 0.01 {
				continue
			}
			fill := blue()
			if b.From >= slo {
				fill = vermillion()
			}
			tall := max(0.6, b.Share/highest*(row-5)) // one in ten thousand is still seen
			p.FillPolygon(fill, []vg.Point{at(x0, foot), at(x0, foot+tall), at(x1-0.7, foot+tall), at(x1-0.7, foot)})
		}
		p.write(p.right+10, foot+row/2-6, 1, 0, 12, black(),
			fmt.Sprintf("%s %% within %g s, p99 %s s", percent(r.AttainedTTFT), slo, seconds(r.TTFT.P99)))
	}
	x := p.px(slo)
	p.stroke(black(), 1, dashed(), at(x, p.bottom), at(x, p.top))
	p.write(x, p.top+5, 0, 1, 11, black(), fmt.Sprintf("SLO %g s", slo))
	return pic
}
