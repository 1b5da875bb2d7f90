// Package zone loads the places of configurations.
package zone

import (
	"errors"
	"time"
)

// Default is the zone of what names none.
const Default = "Etc/UTC"

// Load returns the place of a name of the time zone database, as Europe/Berlin. Nothing, UTC and the default are UTC, without
// a look at the database. An error is the rule that the name breaks.
func Load(name string) (*time.Location, error) {
	switch name {
	case "", Default, "UTC":
		return time.UTC, nil
	case "Local", "localtime":
		return nil, errors.New("must be the same on every machine")
	}
	place, err := time.LoadLocation(name)
	if err != nil {
		return nil, errors.New("must be in the time zone database: " + err.Error())
	}
	return place, nil
}
