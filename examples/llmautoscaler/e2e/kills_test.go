package e2e

import (
	"flag"
	"testing"
	"time"
)

// The counts of the long runs, which .ci/deep kills gives. Without them there are none.
var (
	kills      = flag.Int("kills", 0, "how often TestKills kills the controller")
	changes    = flag.Int("leader-changes", 0, "how many leaders TestLeaderChanges takes away")
	longOutage = flag.Duration("outage", 0, "how long the API server is away once in both, beside many times for seconds")
	ordealSeed = flag.Uint64("ordeal-seed", 1, "of the points, faults and loads of both")
)

// TestKills kills the controller at random points, under faults of the API server: conflicts, answers that are lost or
// late, errors, outages. Every change is one step, no cooldown is lost, and after each ten kills it goes on as the loads
// ask for.
func TestKills(t *testing.T) {
	if *kills == 0 {
		t.Skip("by flag: -kills 200 -outage 5m")
	}
	o := newOrdeal(t, 1, "-leader-elect=false")
	o.through(*kills, func() {
		o.snare(func() int { return 0 }, func(int) { o.replicas[0].kill() })
		o.kills++
	})
	o.end()
}

// TestLeaderChanges takes the lease from one of two replicas of the controller, under the faults of TestKills: it is
// killed, or stops until the other one leads, and goes on in the middle of what it did.
func TestLeaderChanges(t *testing.T) {
	if *changes == 0 {
		t.Skip("by flag: -leader-changes 200 -outage 5m")
	}
	o := newOrdeal(t, 2, "-leader-elect-lease", "1500ms", "-leader-elect-renew", "1s", "-leader-elect-retry", "250ms")
	o.through(*changes, func() {
		stops, struck, held := o.random.IntN(3) > 0, 0, 0
		do := (*replica).kill
		if stops {
			do = (*replica).pause
			o.stops++
		} else {
			o.kills++
		}
		o.snare(o.leader, func(leader int) {
			struck = leader
			_, held = o.ledger.holder()
			do(o.replicas[leader])
		})
		o.within("another one leads", 30*time.Second, func() bool {
			_, n := o.ledger.holder()
			return n > held || o.leader() != struck
		})
		if stops {
			o.pass(time.Duration(o.random.IntN(1500)) * time.Millisecond)
			o.replicas[struck].resume()
		}
	})
	o.end()
}
