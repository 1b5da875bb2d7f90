package forecast

import (
	"encoding/json"
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/printable"
	"github.com/inferscale/inferscale/scaling"
)

// A Source returns the demand on the whole fleet as an interval, and how much of it one replica takes (each), in the same
// unit. It gets the observation that the base policy was shown and the decision that the base policy made. A reading that is
// not Known, or an each that is not above 0, means that the demand is not known now. Failed counts the pods that did not
// answer; their load is not in the lower end.
type Source func(obs *scaling.Observation, d *scaling.Decision) (demand scaling.Reading, each float64)

// A Config says how a forecast becomes a floor. For makes one; its zero value is not valid.
type Config struct {
	// Bounds are the fleet's bounds. The floor and every answer stay within them, as with scaling.Floor.
	Bounds scaling.Bounds `json:"bounds"`
	// ColdStart is the assumed duration of a start until one has been observed.
	ColdStart time.Duration `json:"coldStart"`
	// Scrape and Control are the intervals between scrapes and between decisions.
	Scrape  time.Duration `json:"scrape"`
	Control time.Duration `json:"control"`
	// Spread adds replicas for the noise of the demand: Spread times the square root of the demand in replicas. 0 adds none:
	// the expectation takes the highest value of half an hour on several days and so is above the noise already.
	Spread float64 `json:"spread"`
	// Demand names the metric that is forecast. A stored state of another metric is discarded. The empty name is a name,
	// too.
	Demand string `json:"demand,omitempty"`
	// Location is the time zone of the days, as time.LoadLocation returns it by name; nil means UTC. When the clocks go
	// back, one hour of the day occurs twice, and the larger of its demands counts. When they go forward, the skipped hour
	// of that day is unknown.
	Location *time.Location `json:"-"`
}

// For returns the configuration for a fleet whose days follow the time zone of location: a cold start of five minutes until
// one has been observed, scrapes and decisions every 15 s, and no spread.
func For(bounds scaling.Bounds, location *time.Location) Config {
	return Config{
		Bounds: bounds, ColdStart: 5 * time.Minute, Scrape: 15 * time.Second, Control: 15 * time.Second,
		Location: location,
	}
}

// Validate reports every wrong field at once, each as a *scaling.FieldError.
func (c *Config) Validate() error {
	var e scaling.FieldErrors
	e.Add(c.Bounds.Validate("bounds"))
	e.Check(c.ColdStart > 0 && c.ColdStart <= 24*time.Hour, "coldStart", c.ColdStart, "must be above 0 and at most 24h")
	interval := func(d time.Duration, field string) {
		e.Check(d >= time.Millisecond && d <= time.Hour, field, d, "must be within 1ms and 1h")
	}
	interval(c.Scrape, "scrape")
	interval(c.Control, "control")
	e.Check(printable.Is(c.Demand), "demand", c.Demand, printable.Rule)
	text, _ := json.Marshal(c.Demand) // as it is stored
	e.Check(len(text)-2 <= mostName, "demand", printable.Cut(c.Demand, mostName), "must be at most 512 bytes of JSON")
	e.Check(c.Spread >= 0 && c.Spread <= 10, "spread", c.Spread, "must be within 0 and 10")
	if c.Location != nil {
		name := c.Location.String()
		e.Check(name != "" && name != "Local", "location", name, "must have a name, by which a stored state knows its days, and not Local, which differs between machines")
		e.Check(len(name) <= mostZone && printable.Is(name), "location", printable.Cut(name, mostZone), "must have a name of at most 64 bytes, "+printable.Rule)
		_, offset := time.Unix(0, 0).In(c.Location).Zone()
		e.Check(offset > -86400 && offset < 86400, "location", name, "must be less than a day from UTC")
	}
	return e.Err()
}

// Constants. None of these numbers was fitted to a recorded trace.
const (
	slot       = 300 // seconds: the time step of the memory and of the forecast
	slots      = 86400 / slot
	mostDays   = 15 // two weeks, and today
	mostName   = 512
	mostZone   = 64
	dilation   = 2 // slots by which a pattern may come earlier or later than on other days
	ratioSlots = 6 // slots in which today is compared with another day
	leastRatio = 0.5
	mostRatio  = 2
	quantile   = 0.9
	spare      = 0.1       // share of its demand that a fleet can take in addition
	wins       = 0.7       // a method counts only while its loss is below this share of the constant's loss
	halfLife   = 576       // half-life of a score, in slots
	soon       = 24        // half-life of a method's excess loss of today, in slots
	patience   = 24        // a method may cost today what it gains on average in so many slots
	enough     = 36        // scored slots before a score counts
	mostLead   = 2 * 3600  // seconds
	mostDemand = 1e15      // a demand above this counts as this, in any unit
	mostGap    = 15 * 60.0 // seconds: rows of a history that are further apart have a gap between them
)

// gap is the age in seconds beyond which a demand is not used, and the longest time that one demand stands for: four scrape
// and control intervals.
func (c *Config) gap() float64 { return 4 * (c.Scrape + c.Control).Seconds() }

// count returns the replicas for a demand.
func (c *Config) count(demand, each float64) int32 {
	r := demand / each
	return c.Bounds.Clamp(scaling.Ceil(r + c.Spread*math.Sqrt(r)))
}
