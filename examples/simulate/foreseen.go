package main

import (
	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/scaling"
)

// foreseen returns a policy with a floor under it for what other days needed, which has an effect from the second or third day on.
func (w *world) foreseen(base contender, build func() (scaling.Policy, error), source forecast.Source) contender {
	c := forecast.For(w.bounds, nil)
	c.ColdStart = w.toldStart()
	c.Scrape, c.Control = w.Scrape.Interval, w.Control.Interval
	base.controller = drive(func() (scaling.Policy, error) {
		p, err := build()
		if err != nil {
			return nil, err
		}
		return forecast.New(p, source, c)
	})
	return base
}

// onlyNamed returns the policies that are there only when they are named.
func (w *world) onlyNamed() ([]contender, error) {
	whole, plain := w.learned()
	inFlight, err := w.foreseenInFlight()
	return []contender{whole, plain, inFlight}, err
}

// foreseenInFlight returns the recommended policy by requests in flight, with a floor under it.
func (w *world) foreseenInFlight() (contender, error) {
	p, err := policy.Named("proportional/llm")
	if err != nil {
		return contender{}, err
	}
	base, err := w.contender(p)
	if err != nil {
		return contender{}, err
	}
	m := p.Metrics()[0]
	base.name += "+forecast"
	base.note = "the same with a floor for what other days needed at this time; only when it is named"
	return w.foreseen(base, func() (scaling.Policy, error) { return p.Build(w.bounds) }, proportional.Metric{Name: m.Name, Target: m.Fill}.Demand), nil
}
