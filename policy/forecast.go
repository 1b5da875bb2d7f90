package policy

import (
	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/internal/zone"
	"github.com/inferscale/inferscale/scaling"
)

// A Forecast is a floor under a scaler: what other days needed at this time, a start ahead. It counts only while it foresees
// more than a constant does, and never asks for less than the scaler. It remembers two weeks.
type Forecast struct {
	// TimeZone is the time zone of the days, like Europe/Berlin.
	// +optional
	// +kubebuilder:default=Etc/UTC
	TimeZone TimeZone `json:"timeZone,omitempty"`
}

// foreseen puts the forecast's floor, if there is one, over base. base is nil if it has errors.
func (b *builder) foreseen(base scaling.Policy, f *Forecast, source forecast.Source, c forecast.Config, at string, names []rename) scaling.Policy {
	if f == nil {
		return base
	}
	location, err := zone.Load(string(f.TimeZone))
	if err != nil {
		b.errs.Check(false, at+"forecast.timeZone", string(f.TimeZone), err.Error())
	}
	if base == nil || err != nil {
		return nil
	}
	c.Location, c.Scrape, c.Control = location, b.interval, b.interval
	policy, err := forecast.New(base, source, c)
	if err != nil {
		b.add(err, names)
		return nil
	}
	return policy
}

func (f *Forecast) inForce() *Forecast {
	if f == nil {
		return nil
	}
	return &Forecast{TimeZone: f.TimeZone.inForce()}
}
