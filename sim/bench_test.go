package sim

import (
	"context"
	"testing"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// day is a day of about 500,000 requests on up to 16 replicas.
func day() Scenario {
	s := Ramp()
	s.Name = "day"
	s.Workload = Series{
		Step: 10 * time.Minute, Rates: Diurnal(1.6, 10, 24*time.Hour, 10*time.Minute),
		Input: Length{Mean: 2000, Deviation: 1000, Min: 1, Max: 16_000, LogNormal: true}, Output: Length{Mean: 300, Deviation: 300, Min: 1, Max: 4000, LogNormal: true},
	}
	s.Horizon = 24 * time.Hour
	s.Metrics = []Metric{{Name: MetricWaiting, Signal: Waiting, Fill: 5}, {Name: MetricInFlight, Signal: InFlight, Fill: 50}}
	s.Types[0].Initial = 6
	return s
}

// BenchmarkDay runs a day of half a million requests; its events are those of the agenda.
func BenchmarkDay(b *testing.B) {
	s := day()
	b.ReportAllocs()
	events, requests := int64(0), int64(0)
	for b.Loop() {
		r, err := Run(context.Background(), &s, func() (scaling.Group, error) {
			return scaling.GroupOf(scaling.New(restless{bounds: scaling.Bounds{Min: 6, Max: 8}})), nil
		}, Options{Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		events += r.Events
		requests += r.Requests
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
}

// BenchmarkEvent is one event of a fleet under load, arrivals and boundaries alike: steady state allocates nothing.
func BenchmarkEvent(b *testing.B) {
	s := day()
	s.Workload = Stages{
		Stages: []Stage{{7, MaxDuration - 30*24*time.Hour}}, CV: 1,
		Input: Length{Mean: 2000, Deviation: 500, Min: 1, Max: 16_000}, Output: Length{Mean: 300, Deviation: 100, Min: 1, Max: 4000},
	}
	e := newEngine(&s, Options{Seed: 1})
	e.controller, _ = newController(func() (scaling.Group, error) { return Static(6), nil }, false)
	e.initial()
	e.arrivals = s.Workload.Arrivals(1)
	if err := e.comingNext(); err != nil {
		b.Fatal(err)
	}
	step := func() {
		slot, at := e.agenda.next()
		e.now = at
		if slot == slotArrival {
			if err := e.arrive(); err != nil {
				b.Fatal(err)
			}
		} else {
			e.wake(e.bySlot[slot-firstReplica])
		}
	}
	for range 500_000 { // the pools fill
		step()
	}
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
}

// BenchmarkNaive takes every step by itself, for the ratio to BenchmarkStretches on the same requests.
func BenchmarkNaive(b *testing.B) {
	requests := benchRequests()
	for b.Loop() {
		naiveRun(requests, 3, Qwen32B(), LeastLoaded)
	}
}

// BenchmarkStretches is the simulator on the requests of BenchmarkNaive.
func BenchmarkStretches(b *testing.B) {
	s := plain(Trace{Requests: benchRequests()}, Qwen32B(), 3)
	for b.Loop() {
		runStatic(b, &s, Options{})
	}
}

func benchRequests() (requests []Request) {
	w := Ramp().Workload
	for r, next := w.Arrivals(1), 0; next < 1000; next++ {
		q, _ := r()
		requests = append(requests, q)
	}
	return requests
}
