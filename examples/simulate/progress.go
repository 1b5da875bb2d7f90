package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"

	"github.com/inferscale/inferscale/examples/internal/cli"
)

// silence is how long nothing is said where there is no terminal.
const silence = 30 * time.Second

// A progress shows how far the runs are: a bar on a terminal, and a line now and then elsewhere.
type progress struct {
	bar *progressbar.ProgressBar

	lines       sync.Mutex
	w           io.Writer
	what        string
	done, total int
	began, said time.Time
}

func newProgress(w io.Writer, total int) *progress {
	f, ok := cli.File(w)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		now := time.Now()
		return &progress{w: w, total: total, what: "simulating", began: now, said: now}
	}
	return &progress{bar: progressbar.NewOptions(total,
		progressbar.OptionSetWriter(f), progressbar.OptionSetDescription("simulating"),
		progressbar.OptionShowCount(), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(),
	)}
}

// more makes the whole longer.
func (p *progress) more(n int) {
	if p.bar != nil {
		p.bar.ChangeMax(p.bar.GetMax() + n)
		return
	}
	p.lines.Lock()
	defer p.lines.Unlock()
	p.total += n
}

// at says what is run now.
func (p *progress) at(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
		return
	}
	p.lines.Lock()
	defer p.lines.Unlock()
	p.what = what
}

// step notes a run that ended.
func (p *progress) step() {
	if p.bar != nil {
		_ = p.bar.Add(1) // a bar that cannot be drawn is none
		return
	}
	p.lines.Lock()
	defer p.lines.Unlock()
	p.done++
	if now := time.Now(); p.w != nil && now.Sub(p.said) >= silence {
		p.said = now
		fmt.Fprintf(p.w, "simulate: %s: %d of %d runs after %s\n", p.what, p.done, p.total, now.Sub(p.began).Round(time.Second))
	}
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
