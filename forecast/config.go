package forecast

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// A Source returns the demand on the whole fleet as an interval, and how much of it one replica takes, in the same unit:
// of what a policy was shown, and what it decided on it. A reading that is not Known, or an each that is not above 0,
// says that it is not known now. Pods that were silent are in Failed: what they carry is not in the lower end.
type Source func(obs *scaling.Observation, d *scaling.Decision) (demand scaling.Reading, each float64)

// A Config says how a forecast becomes a floor. For makes one; its zero value is not valid.
type Config struct {
	// Bounds are those of the fleet: a floor is within them, and so is every answer, as with scaling.Floor.
	Bounds scaling.Bounds `json:"bounds"`
	// ColdStart is how long a start is taken to last until one has been seen.
	ColdStart time.Duration `json:"coldStart"`
	// Scrape and Control are the intervals at which pods are scraped and decisions made.
	Scrape  time.Duration `json:"scrape"`
	Control time.Duration `json:"control"`
	// Spread is how many replicas there are for the noise of the demand, times its square root in replicas. 0 is none:
	// what is expected is the highest of half an hour of several days, and so above the noise already.
	Spread float64 `json:"spread"`
	// Demand names what is looked at, as a metric: what is remembered of another one is forgotten. Empty is a name, too.
	Demand string `json:"demand,omitempty"`
	// Location is where a day begins and ends, as time.LoadLocation returns it by a name; nil means UTC. On a day that is an
	// hour longer the larger demand of the hour that comes twice counts; the hour that a shorter one lacks is not known of it.
	Location *time.Location `json:"-"`
}

// For returns the configuration for a fleet whose days are those of a place: a cold start of five minutes until one was
// seen, scrapes and decisions every 15 s, and no spread.
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
	e.Check(len(c.Demand) <= mostName, "demand", c.Demand, "must be at most 512 bytes")
	e.Check(c.Spread >= 0 && c.Spread <= 10, "spread", c.Spread, "must be within 0 and 10")
	if c.Location != nil {
		name := c.Location.String()
		e.Check(name != "" && name != "Local", "location", name, "must have a name, by which a stored state knows its days, and not Local, which differs between machines")
	}
	return e.Err()
}

// What is fixed. None of these numbers was fitted to a recorded trace.
const (
	slot       = 300 // seconds: the step of all that is remembered and forecast
	slots      = 86400 / slot
	mostDays   = 15 // two weeks, and today
	mostName   = 512
	dilation   = 2 // slots by which other days may be early or late
	ratioSlots = 6 // slots in which today is compared with another day
	leastRatio = 0.5
	mostRatio  = 2
	quantile   = 0.9
	spare      = 0.1       // share of a demand by which replicas can take more
	wins       = 0.7       // share of the constant's loss that a method must stay below
	halfLife   = 576       // slots in which what was scored loses half of its weight
	soon       = 24        // slots in which what it cost today loses half of its weight
	patience   = 24        // slots of what a method wins in the mean that it may cost today
	enough     = 36        // scored slots from which on a score says something
	mostLead   = 2 * 3600  // seconds
	mostDemand = 1e15      // that is told from more, in any unit
	mostGap    = 15 * 60.0 // seconds between two rows of a history that are still one
)

// gap is the age in seconds from which on a demand says nothing of now, and the longest time that one stands for: four
// scrapes and decisions.
func (c *Config) gap() float64 { return 4 * (c.Scrape + c.Control).Seconds() }

// count returns the replicas for a demand.
func (c *Config) count(demand, each float64) int32 {
	r := demand / each
	return c.Bounds.Clamp(scaling.Ceil(r + c.Spread*math.Sqrt(r)))
}
