package main

import (
	"fmt"
	"image/color"
	"math"
	"time"

	"gonum.org/v1/plot/vg"

	"github.com/inferscale/inferscale/history"
)

// A day is what was recorded of one, in UTC.
type day struct {
	date  time.Time
	hours []history.Hour
}

// days returns what was recorded, by day.
func (w *world) days() (all []day) {
	if w.fleet == nil {
		return nil
	}
	for _, h := range w.fleet.Hours(w.SLO.TTFT, w.SLO.TPOT) {
		date := h.From.UTC().Truncate(24 * time.Hour)
		if n := len(all); n == 0 || !all[n-1].date.Equal(date) {
			all = append(all, day{date: date})
		}
		d := &all[len(all)-1]
		d.hours = append(d.hours, h)
	}
	if n := len(all); n > 1 && all[n-1].empty() {
		all = all[:n-1] // the minutes after midnight in which nothing was asked
	}
	return all
}

// empty reports whether a day has less than an hour, and nothing in it.
func (d *day) empty() bool {
	length := time.Duration(0)
	for _, h := range d.hours {
		if length += h.Length; !(h.Requests < 0.5) || h.Firsts > 0 || h.Answers > 0 {
			return false
		}
	}
	return length < time.Hour
}

// dayHeadings are those of the table of days.
func dayHeadings() []string {
	return []string{"day (UTC)", "requests", "late first tokens %", "slow answers %", "replica-h", "replicas"}
}

// cells returns a day in words.
func (d *day) cells() []string {
	var requests, firsts, answers, hours, length float64
	var late, slow [2]float64
	for _, h := range d.hours {
		requests += h.Requests
		firsts += h.Firsts
		answers += h.Answers
		hours += h.ReplicaHours
		length += h.Length.Hours()
		for k := range late {
			late[k] += h.Late[k]
			slow[k] += h.Slow[k]
		}
	}
	number := func(x float64, format string) string {
		if math.IsNaN(x) {
			return "–"
		}
		return fmt.Sprintf(format, x)
	}
	return []string{
		d.date.Format("Mon 2006-01-02"), number(math.Round(requests), "%.0f"), between(late, firsts), between(slow, answers),
		number(hours, "%.1f"), number(hours/length, "%.1f"),
	}
}

// between writes a share of which only bounds are known.
func between(n [2]float64, of float64) string {
	if of == 0 {
		return "–"
	}
	return (&bounded{100 * n[0] / of, 100 * n[1] / of}).text("%.1f", 1)
}

// missedPicture draws the hours of the days by how many first tokens were late or answers slow.
func (w *world) missedPicture(days []day) *picture {
	const left, cell, gap, top = 96.0, 40.0, 2.0, 34.0
	row := 22.0
	width, height := left+24*cell+marginRight, top+row*float64(len(days))+34
	worst, when := 0.0, time.Time{}
	for _, d := range days {
		for _, h := range d.hours {
			if m := missed(h); m > worst {
				worst, when = m, h.From
			}
		}
	}
	words := "No hour missed the SLO."
	if worst > 0 {
		words = fmt.Sprintf("The worst is that from %s: %.1f %% of its requests missed.", when.UTC().Format("Mon 2006-01-02 15:04"), 100*worst)
	}
	pic := newPicture("missed", width, height, "What was missed, by hour of the day (UTC)", words)
	for hour := 0; hour < 24; hour += 2 {
		pic.write(left+(float64(hour)+0.5)*cell, height-top+10, 0, 1, 11, grey(), fmt.Sprintf("%02d:00", hour))
	}
	for i, d := range days {
		y := height - top - row*float64(i+1)
		pic.write(left-8, y+row/2, -1, 0, 11, grey(), d.date.Format("Mon 01-02"))
		for _, h := range d.hours {
			x := left + cell*float64(h.From.UTC().Hour())
			box := []vg.Point{at(x, y), at(x+cell-gap, y), at(x+cell-gap, y+row-gap), at(x, y+row-gap)}
			pic.FillPolygon(heat(missed(h)), box)
			if m := missed(h); m >= 0.001 {
				ink := black()
				if m > 0.2 {
					ink = color.White
				}
				pic.write(x+(cell-gap)/2, y+(row-gap)/2, 0, 0, 11, ink, fmt.Sprintf("%.1f", 100*m))
			}
		}
	}
	x := left
	for _, step := range []struct {
		share float64
		text  string
	}{{math.NaN(), "not known"}, {0, "none"}, {0.005, "to 1 %"}, {0.03, "to 5 %"}, {0.1, "to 20 %"}, {0.5, "above"}} {
		pic.FillPolygon(heat(step.share), []vg.Point{at(x, 6), at(x+16, 6), at(x+16, 18), at(x, 18)})
		pic.write(x+22, 12, 1, 0, 11, grey(), step.text)
		x += 96
	}
	return pic
}

// missed returns the share of an hour's requests that were late or slow, the worse of the two and at least; NaN if that is not known.
func missed(h history.Hour) float64 {
	share := math.NaN()
	for _, x := range [][2]float64{{h.Late[0], h.Firsts}, {h.Slow[0], h.Answers}} {
		if x[1] > 0 && !(share >= x[0]/x[1]) {
			share = x[0] / x[1]
		}
	}
	return share
}

// heat returns the colour of a share that was missed.
func heat(share float64) color.Color {
	steps := []struct {
		upTo float64
		of   color.RGBA
	}{
		{0.0001, color.RGBA{0xe8, 0xf1, 0xf6, 0xff}},
		{0.01, color.RGBA{0xfc, 0xe3, 0xcf, 0xff}},
		{0.05, color.RGBA{0xf5, 0xb0, 0x80, 0xff}},
		{0.2, color.RGBA{0xe0, 0x7b, 0x39, 0xff}},
		{math.Inf(1), color.RGBA{0xb0, 0x3a, 0x00, 0xff}},
	}
	for _, s := range steps {
		if share <= s.upTo {
			return s.of
		}
	}
	return pale() // not known
}
