package forecast

// starts learns how long a start takes, from when a count was asked for to when as many are ready; it reports whether
// it learned anything.
func (s *State) starts(at float64, spec, ready int32) (learned bool) {
	k := 0
	for _, r := range s.Rises {
		switch {
		case spec < r.Count: // it was taken back
		case ready >= r.Count:
			if len(s.Starts) == mostStarts {
				s.Starts = s.Starts[:copy(s.Starts, s.Starts[1:])]
			}
			s.Starts = append(s.Starts, min(max(at-r.At, 0), 86400))
			learned = true
		default:
			s.Rises[k] = r
			k++
		}
	}
	s.Rises = s.Rises[:k]
	return learned
}

// learn sets the lead: the P90 of the starts that were seen, a scrape and a decision.
func (f *floor) learn() {
	c, starts := f.model.config, f.state.Starts
	start := c.ColdStart.Seconds()
	if n := len(starts); n > 0 {
		var sorted [mostStarts]float64
		for i, t := range starts {
			k := i
			for ; k > 0 && sorted[k-1] > t; k-- {
				sorted[k] = sorted[k-1]
			}
			sorted[k] = t
		}
		start = sorted[(9*n+9)/10-1]
	}
	f.model.lead = min(start+c.Scrape.Seconds()+c.Control.Seconds(), mostLead)
}
