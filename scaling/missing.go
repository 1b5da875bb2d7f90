package scaling

import "time"

// Missing counts the pods of a fleet that gave no value, by cause. Pods in NotReady that are in none of its parts are booting.
// Counts must not be negative, and none of the parts may exceed NotReady.
type Missing struct {
	NotReady      int32 // not ready, so without a value: booting, or of the kinds below
	Unschedulable int32 // of NotReady: fit on no node
	Crashing      int32 // of NotReady: start and fail
	Stuck         int32 // of NotReady: never ready and no longer expected to be; count 0 where the others count the fill
	Failed        int32 // ready, but the value could not be read
}

func (m Missing) valid() bool {
	in := func(n, all int32) bool { return n >= 0 && n <= all }
	return m.Failed >= 0 && in(m.Unschedulable, m.NotReady) && in(m.Crashing, m.NotReady) && in(m.Stuck, m.NotReady)
}

// StartDeadline returns how long after its creation a pod that was never ready is still expected to become ready:
//
//	max(2 * coldStart, 5 minutes)
//
// where coldStart is the longest observed time that a pod of the same kind took from its creation to ready, or 0 if none was
// observed. An older pod that was never ready is stuck: whatever it is waiting for, it carries no load. An unschedulable pod is
// stuck at once. A pod that was ready before is not stuck: the load that it served may come back to it.
func StartDeadline(coldStart time.Duration) time.Duration {
	const atLeast = 5 * time.Minute
	return max(2*min(max(coldStart, 0), maxDuration/2), atLeast)
}

const maxDuration = time.Duration(1<<63 - 1)

// Stuck notes that some pods count 0 in the upper end of a reading, because they were never ready and are no longer expected to
// be. Its number pods counts all pods of the reading.
const Stuck Code = "Stuck stuck <= pods, unschedulable, crashing"

// NoteStuck appends a step with the code [Stuck], which does not change the count, if the reading has stuck pods. Algorithms
// call it before they append the step that compares the reading with something.
func (d *Decision) NoteStuck(r *Reading) {
	if r.Stuck <= 0 || !r.Known() {
		return
	}
	pods := float64(r.Values) + float64(r.NotReady) + float64(r.Failed)
	d.To(d.Replicas, Stuck, r.Metric, float64(r.Stuck), max(pods, float64(r.Stuck)), float64(r.Unschedulable), float64(r.Crashing))
}
