package scalingtest_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

// ratio asks for a replica for every ten that wait. It is quickly written, and takes no reading for no load.
type ratio struct{}

const needed scaling.Code = "Needed waiting"

func (ratio) Decide(_ time.Time, obs scaling.Observation) scaling.Decision {
	waiting := obs.Reading("waiting").Lower
	d := scaling.HoldAt(obs.SpecReplicas)
	d.To(scaling.Ceil(waiting/10), needed, "", waiting)
	return d
}

func (ratio) Applied(time.Time, int32, int32) {}
func (ratio) MarshalJSON() ([]byte, error)    { return json.Marshal(struct{}{}) }
func (ratio) UnmarshalJSON(_ []byte) error    { return nil }

// printer is a testing.TB for an example: a test passes its *testing.T.
type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Fatalf(format string, args ...any) { fmt.Printf(format, args...) }

// A regression test plays the episode in which a property did not hold. Here it is NoData, without any data nothing is
// done; scalingtest.Run found it, and printed the test and this table.
func ExampleReplay() {
	t := printer{}
	newPolicy := func() scaling.Policy { return ratio{} }

	scalingtest.Replay(t, newPolicy, scalingtest.Options{}, "NoData", scalingtest.Episode{
		Spec: 3,
		Ticks: []scalingtest.Tick{
			{After: 15 * time.Second},
		},
	})
	// Output:
	// NoData: at 15s it says Down 3 -> 0 although there has never been any data
	//    at  spec  ready  readings  verdict  count   reason
	//   15s     3      3  none      Down     3 -> 0  Needed waiting=0
}

func ExampleExplained() {
	const busy scaling.Code = "Busy load > limit"
	d := scaling.HoldAt(3)
	d.To(4, busy, "", 10, 12)
	fmt.Println(scalingtest.Explained(&d))
	// Output:
	// step 0 does not hold: Busy load=10 > limit=12
}
