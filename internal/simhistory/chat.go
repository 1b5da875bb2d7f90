package simhistory

import (
	"time"

	"github.com/inferscale/inferscale/sim"
)

// Chat returns short chats, as many a second as stages say, on a fleet of a server whose requests are to meet 2 s and 60 ms: a past
// that says enough within minutes. It has no metrics.
func Chat(server sim.Server, initial int32, stages ...sim.Stage) sim.Scenario {
	return sim.Scenario{
		Name: "past", Workload: sim.Stages{
			Stages: stages, CV: 1,
			Input:  sim.Length{Mean: 1500, Deviation: 500, Min: 100, Max: 4000},
			Output: sim.Length{Mean: 250, Deviation: 80, Min: 10, Max: 600},
		},
		Types:  []sim.Type{{Server: server, Initial: initial, Startup: sim.ColdStart(time.Minute)}},
		SLO:    sim.SLO{TTFT: 2 * time.Second, TPOT: 60 * time.Millisecond},
		Scrape: sim.Scrape{Interval: 15 * time.Second}, Control: sim.Control{Interval: 15 * time.Second}, Grace: time.Hour,
	}
}

// Conversations is traffic with a rate and lengths that change over the day.
func Conversations(low, high float64, length time.Duration) sim.Series {
	w := sim.Series{
		Step: 15 * time.Minute, Rates: sim.Diurnal(low, high, length, 15*time.Minute),
		Input:  sim.Length{Mean: 1500, Deviation: 2000, Min: 1, Max: 16000, LogNormal: true},
		Output: sim.Length{Mean: 350, Deviation: 400, Min: 1, Max: 4000, LogNormal: true},
	}
	for i := range w.Rates {
		w.Rates[i].Input, w.Rates[i].Output = 800+1400*float64(i%7)/6, 200+300*float64(i%5)/4
	}
	return w
}

// Production is a fleet with such traffic, of which one scrape in a hundred fails.
func Production(server sim.Server, w sim.Workload) *sim.Scenario {
	return &sim.Scenario{
		Name: "recorded", Workload: w, SLO: sim.SLO{TTFT: 3 * time.Second, TPOT: 100 * time.Millisecond},
		Types:   []sim.Type{{Server: server, Initial: 3, Startup: sim.ColdStart(100 * time.Second)}},
		Scrape:  sim.Scrape{Interval: 15 * time.Second, FailureRate: 0.01},
		Control: sim.Control{Interval: 15 * time.Second}, Grace: 30 * time.Minute,
	}
}
