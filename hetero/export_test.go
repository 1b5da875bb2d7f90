package hetero

// NewSearching returns the Fleet of a configuration that does not keep its sequence, as New makes one only of very
// long ones: its answers must be those of one that does.
func NewSearching(c Config) (*Fleet, error) { return newFleet(c, -1) }

// Kept returns how many runs of the sequence a Fleet keeps.
func (f *Fleet) Kept() int { return len(f.runs) }

// Arrange builds the sequence anew and returns how many runs it has.
func (f *Fleet) Arrange() int { return len(f.arrange(len(f.runs))) }
