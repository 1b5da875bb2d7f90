package shadow

import (
	"math"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// An Out says why a shadow is left out.
type Out uint8

// The reasons. The zero value is None: the shadow takes part.
const (
	None    Out = iota
	Overdue     // the shadow is still deciding, and is asked again when it is done
	Failed      // the shadow panicked, and is not asked again
)

// String returns the reason's name.
func (o Out) String() string {
	names := [...]string{"None", "Overdue", "Failed"}
	if int(o) < len(names) {
		return names[o]
	}
	return "Out(?)"
}

// MarshalText returns the reason's name.
func (o Out) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads a reason's name.
func (o *Out) UnmarshalText(text []byte) error {
	for known := None; known <= Failed; known++ {
		if string(text) == known.String() {
			*o = known
			return nil
		}
	}
	return &scaling.FieldError{Field: "out", Value: string(text), Rule: "must be None, Overdue or Failed"}
}

// A Wish is what a shadow asked for last, with the sums of what it has asked for so far. It is plain data.
type Wish struct {
	Name string `json:"name"`
	// Replicas is the count that the shadow asked for and acts as if it had; Ready is how many of them have started.
	Replicas int32 `json:"replicas"`
	Ready    int32 `json:"ready"`
	// Verdict and Reason are the shadow's last decision. Reason has at most 1,024 bytes.
	Verdict scaling.Verdict `json:"verdict"`
	Reason  string          `json:"reason,omitempty"`
	// At is when the shadow was last shown anything, up to which the sums count. Since is when the sums began, with the real
	// count.
	At    time.Time `json:"at,omitzero"`
	Since time.Time `json:"since,omitzero"`
	// Changed is when the shadow last asked for another count. Apart is since when its count has differed from the real one.
	// Remembers is since when its policy has had its memory, which a restart loses. The zero time means never or not at all.
	Changed   time.Time `json:"changed,omitzero"`
	Apart     time.Time `json:"apart,omitzero"`
	Remembers time.Time `json:"remembers,omitzero"`
	// ReplicaSeconds is what the shadow has asked for since Since, and RealReplicaSeconds what was asked of the real fleet in
	// the same time. Both count requested replicas, ready or not.
	ReplicaSeconds     float64 `json:"replicaSeconds"`
	RealReplicaSeconds float64 `json:"realReplicaSeconds"`
	// Out says why the shadow is left out, if it is, and Why gives the reason in words.
	Out Out    `json:"out,omitempty"`
	Why string `json:"why,omitempty"`
}

// valid reports whether Wishes can have returned the wish.
func (w *Wish) valid() bool {
	sum := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	return w.Replicas >= 0 && w.Ready >= 0 && w.Since.UTC().Year() >= 1970 && w.At.UTC().Year() <= 9999 && !w.At.Before(w.Since) && !w.Changed.After(w.At) &&
		sum(w.ReplicaSeconds) && sum(w.RealReplicaSeconds)
}

// longest is how many bytes a text in a wish may have.
const longest = 1024

func short(s string) string {
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest-3], "") + "..."
}
