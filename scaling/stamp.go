package scaling

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/internal/window"
)

// A Stamp is a time in stored state, in Unix milliseconds; its zero value is no time. Unlike a time.Time it is equal to itself
// after a trip through JSON.
type Stamp struct {
	Set   bool
	Milli int64
}

// StampOf returns the stamp of t, rounded down to the millisecond. A time more than 2^53 ms (285,000 years) before or after
// 1970 is clamped to that distance, so that differences of stamps do not overflow.
func StampOf(t time.Time) Stamp { return Stamp{Set: true, Milli: window.Milli(t)} }

// Time returns the stamp's time in UTC; the zero time for no time.
func (s Stamp) Time() time.Time {
	if !s.Set {
		return time.Time{}
	}
	return time.UnixMilli(s.Milli).UTC()
}

// IsZero reports whether the stamp is no time, so that the JSON option omitzero leaves it out.
func (s Stamp) IsZero() bool { return !s.Set }

// Back returns the stamp ms milliseconds earlier, clamped as StampOf clamps; no time stays no time.
func (s Stamp) Back(ms int64) Stamp {
	if s.Set {
		s.Milli = max(s.Milli-ms, -window.Far)
	}
	return s
}

// MarshalJSON writes the milliseconds, or null for no time.
func (s Stamp) MarshalJSON() ([]byte, error) {
	if !s.Set {
		return []byte("null"), nil
	}
	return json.Marshal(s.Milli)
}

// UnmarshalJSON reads what MarshalJSON wrote. It refuses a time that StampOf cannot return: no policy wrote such a state, and a
// policy with it could wait forever.
func (s *Stamp) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*s = Stamp{}
		return nil
	}
	var ms int64
	if err := json.Unmarshal(data, &ms); err != nil {
		return err
	}
	if ms < -window.Far || ms > window.Far {
		return fmt.Errorf("%d: must be a time in Unix milliseconds, at most 2^53 from 0", ms)
	}
	*s = Stamp{Set: true, Milli: ms}
	return nil
}
