package shadow

import (
	"math"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// An Out says why a shadow is left out.
type Out uint8

// The reasons. The zero value is None: it takes part.
const (
	None    Out = iota
	Overdue     // its decision is not made yet; it is asked again when it is
	Failed      // it panicked, and is not asked again
)

// String returns the reason's name.
func (o Out) String() string {
	switch o {
	case None:
		return "None"
	case Overdue:
		return "Overdue"
	case Failed:
		return "Failed"
	}
	return "Out(?)"
}

// MarshalText returns the reason's name.
func (o Out) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// A Wish is what a shadow asked for last, and what that came to. It is plain data.
type Wish struct {
	Name string `json:"name"`
	// Replicas is the count that it asked for, and believes to have; Ready is how many of them have started.
	Replicas int32 `json:"replicas"`
	Ready    int32 `json:"ready"`
	// Verdict and Reason are its last decision, Reason of at most 1,024 bytes.
	Verdict scaling.Verdict `json:"verdict"`
	Reason  string          `json:"reason,omitempty"`
	// At is when it was last shown anything: up to when the sums count. Since is when they begin, with the real count.
	At    time.Time `json:"at,omitzero"`
	Since time.Time `json:"since,omitzero"`
	// Changed is when it last asked for another count, Apart since when its count is another one than the real fleet's, and
	// Remembers since when its policy has its memory: a restart loses that. The zero time means never, and not at all.
	Changed   time.Time `json:"changed,omitzero"`
	Apart     time.Time `json:"apart,omitzero"`
	Remembers time.Time `json:"remembers,omitzero"`
	// ReplicaSeconds are those that it has wished for since Since, and RealReplicaSeconds those that were asked for in truth
	// in the same time. Both count what is asked for, ready or not.
	ReplicaSeconds     float64 `json:"replicaSeconds"`
	RealReplicaSeconds float64 `json:"realReplicaSeconds"`
	// Out is why it is left out, if it is, and Why the reason in words.
	Out Out    `json:"out,omitempty"`
	Why string `json:"why,omitempty"`
}

// valid reports whether a wish can have been returned by Wishes.
func (w *Wish) valid() bool {
	sum := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	return w.Replicas >= 0 && w.Ready >= 0 && !w.At.IsZero() && !w.Since.IsZero() && !w.At.Before(w.Since) && !w.Changed.After(w.At) &&
		sum(w.ReplicaSeconds) && sum(w.RealReplicaSeconds)
}

// longest is how long a text in a wish may be.
const longest = 1024

func short(s string) string {
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest-3], "") + "..."
}
