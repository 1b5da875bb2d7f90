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
