package policy

import (
	"cmp"
	"slices"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/internal/zone"
	"github.com/inferscale/inferscale/scaling"
)

// A Forecast is a floor under a scaler: what other days needed at this time, a start ahead. It counts only while it foresees
// more than a constant does, and never asks for less than the scaler. It remembers two weeks.
type Forecast struct {
	// Mode is Auto, or Disabled for no floor.
	// +optional
	// +kubebuilder:default=Auto
	Mode ForecastMode `json:"mode,omitempty"`
	// TimeZone is the time zone of the days, like Europe/Berlin.
	// +optional
	// +kubebuilder:default=Etc/UTC
	TimeZone TimeZone `json:"timeZone,omitempty"`
}

// A ForecastMode says whether a scaler has a floor by forecast.
//
// +kubebuilder:validation:Enum=Auto;Disabled
type ForecastMode string

// The modes.
const (
	ForecastAuto     ForecastMode = "Auto"
	ForecastDisabled ForecastMode = "Disabled"
)

// Foresees reports whether there is a floor by forecast: by default there is none.
func (s *ProportionalScaler) Foresees() bool { return s.Forecast != nil && s.Forecast.foresees() }

// Foresees reports whether there is a floor by forecast: by default there is one, for days in UTC.
func (s *CapacityScaler) Foresees() bool { return s.Forecast == nil || s.Forecast.foresees() }

func (f *Forecast) foresees() bool { return f.Mode != ForecastDisabled }

// foreseen puts the floor of a forecast over base, which is nil if it has errors.
func (b *builder) foreseen(base scaling.Policy, f *Forecast, source forecast.Source, c forecast.Config, at string, names []rename) scaling.Policy {
	given := or(f, Forecast{})
	modes := []ForecastMode{ForecastAuto, ForecastDisabled}
	b.errs.Check(given.Mode == "" || slices.Contains(modes, given.Mode), at+"forecast.mode", string(given.Mode), "must be "+oneOf(modes))
	location, err := zone.Load(string(given.TimeZone))
	if err != nil {
		b.errs.Check(false, at+"forecast.timeZone", string(given.TimeZone), err.Error())
	}
	if base == nil || err != nil {
		return nil
	}
	if !given.foresees() {
		return base
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
	return &Forecast{Mode: cmp.Or(f.Mode, ForecastAuto), TimeZone: f.TimeZone.inForce()}
}
