package hetero

// A Change is the change of the count of one type.
type Change struct {
	Type int    `json:"type"` // index of the type in the configuration
	Name string `json:"name"`
	From int32  `json:"from"`
	To   int32  `json:"to"`
}

// Starts returns how many replicas are to be started.
func (c Change) Starts() int32 { return saturate(max(0, int64(c.To)-int64(c.From))) }

// Stops returns how many replicas are to be stopped.
func (c Change) Stops() int32 { return saturate(max(0, int64(c.From)-int64(c.To))) }

// Plan appends to dst the changes from the current counts to a target, one for every type whose count changes, in the order
// of the configuration, and returns dst. Missing counts are 0. If the starts are complete before the stops begin, the fleet
// is never smaller than the smaller of the two placements.
func (f *Fleet) Plan(dst []Change, current, target []int32) []Change {
	for i := range f.config.Types {
		from, to := at(current, int32(i)), at(target, int32(i))
		if from != to {
			dst = append(dst, Change{Type: i, Name: f.config.Types[i].Name, From: from, To: to})
		}
	}
	return dst
}

// Moves returns how many replicas start and how many stop between two placements. Missing counts are 0.
func Moves(current, target []int32) (starts, stops int64) {
	for i := range max(len(current), len(target)) {
		d := int64(at(target, int32(i))) - int64(at(current, int32(i)))
		starts += max(d, 0)
		stops -= min(d, 0)
	}
	return starts, stops
}
