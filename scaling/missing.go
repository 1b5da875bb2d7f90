package scaling

import "time"

// Missing counts the pods of a fleet that gave no value, by what is known of them. What is in NotReady and in none of
// its parts is booting. Counts are not negative, and none of the parts is more than NotReady.
type Missing struct {
	NotReady      int32 // cannot have a value: booting, or of the kinds below
	Unschedulable int32 // of NotReady: no node takes it
	Crashing      int32 // of NotReady: it starts and fails
	Stuck         int32 // of NotReady: never ready and not expected any more; counts 0 where the others count the fill
	Failed        int32 // ready and silent: a value should be there and could not be had
}

func (m Missing) valid() bool {
	in := func(n, all int32) bool { return n >= 0 && n <= all }
	return m.Failed >= 0 && in(m.Unschedulable, m.NotReady) && in(m.Crashing, m.NotReady) && in(m.Stuck, m.NotReady)
}

// StartDeadline returns how long a pod that was never ready is taken for one that is coming, from its creation:
//
//	max(2 * coldStart, 5 minutes)
//
// where coldStart is the longest time that a pod of the same kind took from its creation to ready, as far as it was
// seen, and 0 if none was. A pod that is older, and still was never ready, is stuck: whatever it is waiting for, it
// carries no load. A pod that no node takes is stuck at once. One that was ready before is not: what it served may come
// back to it.
func StartDeadline(coldStart time.Duration) time.Duration {
	const atLeast = 5 * time.Minute
	return max(2*min(max(coldStart, 0), maxDuration/2), atLeast)
}

const maxDuration = time.Duration(1<<63 - 1)

// Stuck notes that pods count 0 in the upper end of a reading, as they were never ready and are not expected any more;
// pods are all that the reading is of.
const Stuck Code = "Stuck stuck <= pods, unschedulable, crashing"

// NoteStuck appends a step of the code [Stuck], which changes nothing, if the reading has such pods: for algorithms,
// ahead of the step that compares the reading with something.
func (d *Decision) NoteStuck(r *Reading) {
	if r.Stuck <= 0 || !r.Known() {
		return
	}
	pods := float64(r.Values) + float64(r.NotReady) + float64(r.Failed)
	d.To(d.Replicas, Stuck, r.Metric, float64(r.Stuck), max(pods, float64(r.Stuck)), float64(r.Unschedulable), float64(r.Crashing))
}
