package main

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"image/color"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A picture is a drawing of a size in pixels, with (0, 0) at the bottom left.
type picture struct {
	draw.Canvas

	svg           *vgsvg.Canvas
	width, height float64
	id            string
	title, desc   string
}

// newPicture returns an empty picture. Title and description are for those who do not see it.
func newPicture(id string, width, height float64, title, desc string) *picture {
	svg := vgsvg.New(vg.Length(width), vg.Length(height)) // a point is a unit of the picture, shown as a pixel
	return &picture{Canvas: draw.New(svg), svg: svg, width: width, height: height, id: id, title: title, desc: desc}
}

// inline returns the picture as an element of a page.
func (p *picture) inline() (template.HTML, error) {
	var b bytes.Buffer
	if _, err := p.svg.WriteTo(&b); err != nil {
		return "", fmt.Errorf("picture %s: %w", p.id, err)
	}
	_, body, ok := strings.Cut(b.String(), "<svg")
	if ok {
		_, body, ok = strings.Cut(body, ">")
	}
	if !ok {
		return "", fmt.Errorf("picture %s: no svg element", p.id)
	}
	body = strings.ReplaceAll(body, "font-family:Liberation Sans;", "")
	body = regexp.MustCompile(`font-(variant|style):[a-z]+;|font-weight:normal;`).ReplaceAllString(body, "")
	head := fmt.Sprintf(`<svg viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		p.width, p.height, p.id, p.id, p.id, html.EscapeString(p.title), p.id, html.EscapeString(p.desc))
	return template.HTML(head + body), nil //nolint:gosec // all text in it is escaped, here and by vgsvg
}

// The colours are those of Okabe and Ito, which colour-blind readers can tell apart.
func black() color.Color      { return color.RGBA{0x22, 0x22, 0x22, 0xff} }
func grey() color.Color       { return color.RGBA{0x6b, 0x6b, 0x6b, 0xff} }
func pale() color.Color       { return color.RGBA{0xe4, 0xe4, 0xe4, 0xff} }
func shade() color.Color      { return color.RGBA{0xd9, 0xd9, 0xd9, 0xff} }
func orange() color.Color     { return color.RGBA{0xe6, 0x9f, 0x00, 0xff} }
func sky() color.Color        { return color.RGBA{0x56, 0xb4, 0xe9, 0xff} }
func green() color.Color      { return color.RGBA{0x00, 0x9e, 0x73, 0xff} }
func blue() color.Color       { return color.RGBA{0x00, 0x72, 0xb2, 0xff} }
func vermillion() color.Color { return color.RGBA{0xd5, 0x5e, 0x00, 0xff} }
func purple() color.Color     { return color.RGBA{0xcc, 0x79, 0xa7, 0xff} }

// lettering returns the style of text of a size in pixels.
func lettering(size float64, c color.Color) text.Style {
	return text.Style{
		Color: c, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)},
		Handler: plot.DefaultTextHandler,
	}
}

// write puts text at a place, aligned as given: -1 puts the text left of or below it, 0 around it, 1 right of or above.
func (p *picture) write(x, y float64, horizontal, vertical int, size float64, c color.Color, words string) {
	style := lettering(size, c)
	style.XAlign = text.XAlignment(float64(horizontal-1) / 2)
	style.YAlign = text.YAlignment(float64(vertical-1) / 2)
	p.FillText(style, at(x, y), words)
}

// stroke draws a line.
func (p *picture) stroke(c color.Color, width float64, dashes []vg.Length, points ...vg.Point) {
	p.StrokeLines(draw.LineStyle{Color: c, Width: vg.Length(width), Dashes: dashes}, points)
}

// dot draws a filled circle.
func (p *picture) dot(c color.Color, radius, x, y float64) {
	p.DrawGlyphNoClip(draw.GlyphStyle{Color: c, Radius: vg.Length(radius), Shape: draw.CircleGlyph{}}, at(x, y))
}

func at(x, y float64) vg.Point { return vg.Point{X: vg.Length(x), Y: vg.Length(y)} }

func dashed() []vg.Length { return []vg.Length{4, 3} }
