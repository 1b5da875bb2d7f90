package cluster

import (
	"cmp"
	"math"
	"sync"
	"time"
)

// FleetOptions of [NewFleet].
type FleetOptions struct {
	// Slots is how many requests a pod runs at once. Zero: 8.
	Slots int
	// Service is how long one request runs. Zero: one second.
	Service time.Duration
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// A Fleet is a queue of requests before the ready pods, as a fluid: they arrive at a rate, and each pod runs a number of
// them at once. With q requests in flight, a rate of r, n pods and a service time of s,
//
//	dq/dt = r - min(q, n*Slots) / s
//
// and each pod's page shows its share of what runs and of what waits. So more pods lower the queue, and without pods it
// grows; see [Fleet.InFlight] for that. Its methods may be called from several goroutines.
type Fleet struct {
	slots   float64
	service float64 // seconds
	now     func() time.Time

	mu       sync.Mutex
	rate     float64 // requests per second
	pods     int
	inFlight float64
	last     time.Time
}

// NewFleet returns a fleet without requests and pods. Give it to [KubeletOptions].
func NewFleet(o FleetOptions) *Fleet {
	f := &Fleet{
		slots:   float64(cmp.Or(o.Slots, 8)),
		service: cmp.Or(o.Service, time.Second).Seconds(),
		now:     o.Now,
	}
	if f.now == nil {
		f.now = time.Now
	}
	f.last = f.now()
	return f
}

// SetRate sets how many requests arrive per second from now on.
func (f *Fleet) SetRate(perSecond float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance()
	f.rate = perSecond
}

// InFlight returns how many requests run and wait now.
func (f *Fleet) InFlight() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance()
	return f.inFlight
}

// Metrics are the values of each ready pod's page now; it is a [KubeletOptions.Metrics]. A pod that is not ready is idle.
func (f *Fleet) Metrics(pod Pod) map[string]float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance()
	if f.pods == 0 || !pod.Ready || pod.Leaving {
		return Page(0, 0, 0)
	}
	share := f.inFlight / float64(f.pods)
	running := math.Min(share, f.slots)
	const full = 0.95 // of the KV cache, with all slots taken
	return Page(int(math.Round(share-running)), int(math.Round(running)), full*running/f.slots)
}

// setPods sets how many pods are ready from now on.
func (f *Fleet) setPods(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance()
	f.pods = n
}

// advance lets the time since the last call pass, exactly: a straight line while all slots are taken, and an
// exponential below. The caller holds the lock.
func (f *Fleet) advance() {
	now := f.now()
	dt := now.Sub(f.last).Seconds()
	if dt <= 0 {
		return
	}
	f.last = now
	taken := float64(f.pods) * f.slots // the number in flight that takes all slots
	if f.inFlight > taken {
		slope := f.rate - taken/f.service
		if slope >= 0 || f.inFlight+slope*dt >= taken {
			f.inFlight += slope * dt
			return
		}
		dt -= (f.inFlight - taken) / -slope
		f.inFlight = taken
	}
	steady := f.rate * f.service // where the exponential goes
	if f.inFlight < taken && steady > taken {
		if full := f.service * math.Log((steady-f.inFlight)/(steady-taken)); full < dt {
			f.inFlight = taken + (f.rate-taken/f.service)*(dt-full)
			return
		}
	}
	if f.inFlight == taken && steady > taken {
		f.inFlight += (f.rate - taken/f.service) * dt
		return
	}
	f.inFlight = steady + (f.inFlight-steady)*math.Exp(-dt/f.service)
}
