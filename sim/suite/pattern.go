package suite

import (
	"math"
	"slices"
	"time"

	"github.com/inferscale/inferscale/internal/splitmix"
)

const (
	step  = time.Minute
	steps = 120     // of two hours
	day   = 24 * 60 // steps of a day
	days  = 4
)

// lasts returns how many steps a pattern has.
func lasts(name string) int {
	if name == recurring {
		return days * day
	}
	return steps
}

// pattern returns a load for each step, at most 1 except for bursts, noise and weekdays.
func pattern(name string, seed uint64) []float64 {
	rates := make([]float64, lasts(name))
	random := splitmix.Stream{State: 98 + seed}
	switch name {
	case "bursts":
		bursts(rates, &random)
	case "clients":
		clients(rates, &random)
	case "noise":
		noise(rates, &random)
	case "steps":
		levels(rates, &random)
	case recurring:
		weekdays(rates, &random)
	default:
		plain(rates, name, &random)
	}
	return rates
}

// plain computes a pattern with a simple formula.
func plain(rates []float64, name string, random *splitmix.Stream) {
	walk := 0.5
	for i := range rates {
		x := float64(i) / steps
		switch name {
		case "ramp":
			rates[i] = 0.2 + 0.8*(1-math.Abs(2*x-1))
		case "day":
			rates[i] = 0.6 - 0.4*math.Cos(2*math.Pi*x)
		case "flash":
			if rates[i] = 0.4; i%23 > 20 {
				rates[i] = 0.9
			}
		case "onoff":
			rates[i] = 0.25 + 0.65*float64(int(x*6)%2)
		case "walk":
			walk = min(max(walk+(random.Uniform()-0.5)*0.12, 0.15), 1)
			rates[i] = walk
		default: // steady
			rates[i] = 0.6
		}
	}
}

// bursts computes a low wave that is 1.3 to 2 times as high for one to a few minutes, every ten minutes on average.
func bursts(rates []float64, random *splitmix.Stream) {
	left, height := 0, 1.0
	for i := range rates {
		if left == 0 && random.Uniform() < 1.0/9 {
			left, height = 1+int(2*random.Exponential()), 1.3+0.7*random.Uniform()
		}
		rates[i] = 0.4 - 0.12*math.Cos(2*math.Pi*float64(i)/steps)
		if left > 0 {
			left--
			rates[i] *= height
		}
	}
}

// clients computes the sum of fifteen clients of which few have most of the load. Each goes on and off by itself, for 12 and
// 8 minutes on average, and comes back with another rate.
func clients(rates []float64, random *splitmix.Stream) {
	const ends, begins, most = 1.0 / 12, 1.0 / 8, 0.95
	for c := 1; c <= 15; c++ {
		weight := 1 / math.Pow(float64(c), 0.9)
		on, level := random.Uniform() < 0.6, 1.0
		for i := range rates {
			turns := begins
			if on {
				turns = ends
			}
			if random.Uniform() < turns {
				on, level = !on, math.Exp(0.4*normal(random))
			}
			if on {
				rates[i] += weight * level
			} else {
				rates[i] += 0.3 * weight
			}
		}
	}
	scale := most / slices.Max(rates)
	for i := range rates {
		rates[i] *= scale
	}
}

// noise computes a wave from 0.25 to 0.75 times noise that is correlated over about three minutes.
func noise(rates []float64, random *splitmix.Stream) {
	a := 0.0
	for i := range rates {
		a = 0.7*a + 0.12*normal(random)
		rates[i] = (0.5 - 0.25*math.Cos(2*math.Pi*float64(i)/steps)) * math.Exp(a)
	}
}

// levels computes levels that last a quarter of an hour on average, each some 35 % above or below the one before it.
func levels(rates []float64, random *splitmix.Stream) {
	level, left := 0.3+0.4*random.Uniform(), 0
	for i := range rates {
		if left == 0 {
			left = 3 + int(12*random.Exponential())
			level = min(max(level*math.Exp(0.35*normal(random)), 0.15), 1)
		}
		left--
		rates[i] = level
	}
}

// weekdays computes days of an office, from midnight on: few requests at night, most of them from nine to half past five, and fewer at
// noon. Each day is up to 4 % higher or lower than the others, and up to four minutes early or late.
func weekdays(rates []float64, random *splitmix.Stream) {
	const night, work, noon, width = 0.12, 0.88, 0.25, 6.0 // width: minutes in which a rise gets from 0.5 to 0.73
	about := func(of float64) float64 { return of * (2*random.Uniform() - 1) }
	level, late := 1.0, 0.0
	for i := range rates {
		if i%day == 0 {
			level, late = 1+about(0.04), about(4)
		}
		x := float64(i%day) - late
		rises := func(hour float64) float64 { return 1 / (1 + math.Exp((60*hour-x)/width)) }
		open := rises(9) - rises(17.5)
		rates[i] = level * (night + work*open - noon*(rises(12)-rises(13)))
	}
}

// normal returns a number of a standard normal distribution.
func normal(random *splitmix.Stream) float64 {
	return math.Sqrt(-2*math.Log(1-random.Uniform())) * math.Cos(2*math.Pi*random.Uniform())
}
