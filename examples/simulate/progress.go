package main

import (
	"io"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"

	"github.com/inferscale/inferscale/examples/internal/cli"
)

// A progress shows how far the runs are, on a terminal only.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(w io.Writer, total int) *progress {
	f, ok := cli.File(w)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(f), progressbar.OptionSetDescription("simulating"),
		progressbar.OptionShowCount(), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(),
	)}
}

// more makes the whole longer.
func (p *progress) more(n int) {
	if p.bar != nil {
		p.bar.ChangeMax(p.bar.GetMax() + n)
	}
}

// at says what is run now.
func (p *progress) at(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
	}
}

// step notes a run that ended.
func (p *progress) step() {
	if p.bar != nil {
		_ = p.bar.Add(1) // a bar that cannot be drawn is none
	}
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
