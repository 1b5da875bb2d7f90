package controller

import (
	"fmt"
	"strconv"
	"time"

	"github.com/inferscale/inferscale/capacity"
	"github.com/inferscale/inferscale/loop/shadow"
	"github.com/inferscale/inferscale/scaling"
)

// replayEvery is how often it is asked at most what the counts of an object's shadows would have attained. Of all objects one
// is replayed at a time; one that finds another at it asks again in its next round.
const replayEvery = 5 * time.Minute

// An attained says what counts would have attained.
type attained struct {
	actual  capacity.Attainment
	shadows map[string]capacity.Attainment
}

// record notes what was seen, and returns what is to be done beside the rounds, if a replay is due. The lock is held.
func (w *watchers) record(now time.Time, obs scaling.Observation) (replay func()) {
	if w.recorder == nil || w.shadows == nil || !w.recorder.See(now, obs) {
		return nil
	}
	if since := now.Sub(w.replayed); w.replaying || !w.replayed.IsZero() && since < replayEvery && since >= 0 {
		return nil
	}
	if w.replayed.IsZero() { // nothing is known yet
		w.replayed = now
		return nil
	}
	select {
	case w.controller.replays <- struct{}{}:
	default:
		return nil
	}
	w.replaying, w.replayed = true, now
	actual, trails, start := w.shadows.Trails()
	past, config, names := w.recorder.Past(start), *w.plan.Capacity, w.shadows.Wishes()
	return func() {
		defer func() { <-w.controller.replays }()
		found := attain(w, &past, &config, actual, trails, names)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.replaying = false
		if !w.closed && found != nil {
			w.attained = found
		}
	}
}

// attain replays the past with each of the counts. It is nothing if too little came, or on trouble, which is logged.
func attain(w *watchers, past *capacity.Past, c *capacity.Config, actual []shadow.Count, trails [][]shadow.Count, names []shadow.Wish) (found *attained) {
	defer func() {
		if p := recover(); p != nil {
			found = nil
			w.controller.config.Logger.Error("shadows not replayed", "namespace", w.namespace, "panic", fmt.Sprint(p))
		}
	}()
	found = &attained{shadows: make(map[string]capacity.Attainment)}
	var known bool
	if found.actual, known = past.Attained(c, counts(actual)); !known {
		return nil
	}
	for i, trail := range trails {
		if a, known := past.Attained(c, counts(trail)); known {
			found.shadows[names[i].Name] = a
		}
	}
	return found
}

func counts(trail []shadow.Count) (all []capacity.Count) {
	for _, c := range trail {
		all = append(all, capacity.Count{At: c.At, Replicas: min(c.Replicas, mostReplayed)})
	}
	return all
}

// mostReplayed bounds what a replay has to carry.
const mostReplayed = 1024

// share writes a share, with three digits.
func share(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }
