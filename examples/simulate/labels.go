package main

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
)

// A box is a rectangle that is taken.
type box struct{ left, right, bottom, top float64 }

func (b box) meets(o box) bool {
	return b.left < o.right && o.left < b.right && b.bottom < o.top && o.bottom < b.top
}

// labels puts words beside points so that no two overlap, nor a word and a point.
type labels struct {
	*panel

	taken []box
}

// avoid keeps a circle free.
func (l *labels) avoid(x, y, radius float64) {
	l.taken = append(l.taken, box{x - radius, x + radius, y - radius, y + radius})
}

// place puts words near a point: beside it if there is room, else further away, with a line to it.
func (l *labels) place(x, y, size float64, c color.Color, words string) {
	for distance := 9.0; distance < 130; distance += 7 {
		for _, angle := range []float64{0, 180, 35, -35, 145, -145, 90, -90, 60, -60, 120, -120} {
			if l.try(x, y, distance, angle, size, c, words) {
				return
			}
		}
	}
	l.write(x+9, y, 1, 0, size, c, words) // nowhere is room: better over something than not at all
}

// ifRoom puts words beside a point if there is room at once.
func (l *labels) ifRoom(x, y, size float64, c color.Color, words string) {
	for _, angle := range []float64{0, 180, 90, -90, 35, -35, 145, -145} {
		if l.try(x, y, 6, angle, size, c, words) {
			return
		}
	}
}

func (l *labels) try(x, y, distance, angle, size float64, c color.Color, words string) bool {
	sin, cos := math.Sincos(angle * math.Pi / 180)
	ax, ay := x+distance*cos, y+distance*sin
	wide := float64(lettering(size, c).Width(words)) * 1.04 // the reader's font may be another one
	horizontal := 0
	b := box{left: ax - wide/2, right: ax + wide/2}
	switch {
	case cos > 0.3:
		b.left, b.right, horizontal = ax, ax+wide, 1
	case cos < -0.3:
		b.left, b.right, horizontal = ax-wide, ax, -1
	}
	b.bottom, b.top = ay-size*0.55, ay+size*0.55
	if b.left < l.left+2 || b.right > l.right || b.bottom < l.bottom+2 || b.top > l.top+2 {
		return false
	}
	if slices.ContainsFunc(l.taken, b.meets) {
		return false
	}
	l.taken = append(l.taken, b)
	veil := color.NRGBA{0xff, 0xff, 0xff, 0xd0} // over lines, so that words are read
	l.FillPolygon(veil, []vg.Point{at(b.left, b.bottom), at(b.left, b.top), at(b.right, b.top), at(b.right, b.bottom)})
	if distance > 14 {
		l.stroke(grey(), 0.6, nil, vg.Point{X: vg.Length(x), Y: vg.Length(y)}, at(ax, ay))
	}
	l.write(ax, ay, horizontal, 0, size, c, words)
	return true
}

// fitting returns words, or as many letters of them as there is room for.
func fitting(words string, size, room float64) string {
	wide := func(words string) bool { return 1.04*float64(lettering(size, black()).Width(words)) > room }
	if !wide(words) {
		return words
	}
	letters := []rune(words)
	for len(letters) > 0 && wide(string(letters)+"…") {
		letters = letters[:len(letters)-1]
	}
	return string(letters) + "…"
}
