package cronscale

import (
	"errors"
	"strings"
	"testing"

	"github.com/inferscale/inferscale/scaling"
)

// TestInvalidInputNamesThePolicy has every mistake in one table.
func TestInvalidInputNamesThePolicy(t *testing.T) {
	bounds := scaling.Bounds{Min: 1, Max: 10}
	policy := func(p Policy) Config {
		return Config{Bounds: bounds, Policies: []Policy{{"day", "0 8 * * *", 5, ""}, p}}
	}
	window := func(w Window) Config { return Config{Mode: InWindow, Bounds: bounds, Windows: []Window{w}} }
	for name, tt := range map[string]struct {
		config Config
		want   string
	}{
		"every":            {policy(Policy{"night", "@every 1h", 1, ""}), `policies[1] "night".schedule: "@every 1h": @every has no fixed times`},
		"TZ= alone":        {policy(Policy{"night", "TZ=UTC", 1, ""}), `policies[1] "night".schedule: "TZ=UTC": must not name a zone`},
		"TZ=":              {policy(Policy{"night", "TZ=Asia/Tokyo 0 8 * * *", 1, ""}), `policies[1] "night".schedule: "TZ=Asia/Tokyo 0 8 * * *": must not name a zone`},
		"CRON_TZ=":         {policy(Policy{"night", "CRON_TZ=", 1, ""}), `policies[1] "night".schedule: "CRON_TZ=": must not name a zone`},
		"31 February":      {policy(Policy{"night", "0 0 31 2 *", 1, ""}), `policies[1] "night".schedule: "0 0 31 2 *": never fires`},
		"empty field":      {policy(Policy{"night", ", * * * *", 1, ""}), `policies[1] "night".schedule: ", * * * *": never fires`},
		"empty schedule":   {policy(Policy{"night", " ", 1, ""}), `policies[1] "night".schedule: " ": must not be empty`},
		"six fields":       {policy(Policy{"night", "0 0 8 * * *", 1, ""}), `policies[1] "night".schedule: "0 0 8 * * *": is not a cron expression of five fields`},
		"unknown zone":     {policy(Policy{"night", "0 8 * * *", 1, "Nope/Nope"}), `policies[1] "night".timeZone: "Nope/Nope": must be in the time zone database`},
		"Local":            {policy(Policy{"night", "0 8 * * *", 1, "Local"}), `policies[1] "night".timeZone: "Local": must be the same on every machine`},
		"negative target":  {policy(Policy{"night", "0 8 * * *", -1, ""}), `policies[1] "night".targetReplicas: -1: must not be negative`},
		"no name":          {policy(Policy{"", "0 8 * * *", 1, ""}), `policies[1].name: "": must not be empty`},
		"name unprintable": {policy(Policy{"day\x1b", "0 8 * * *", 1, ""}), `policies[1] "day\x1b".name: "day\x1b": must be of printable characters`},
		"name twice":       {policy(Policy{"day", "0 8 * * *", 1, ""}), `policies[1] "day".name: "day": must be unique: policies[0] has it`},
		"no policies":      {Config{Bounds: bounds}, `policies: 0: must have at least one`},
		"no windows":       {Config{Mode: InWindow, Bounds: bounds}, `windows: 0: must have at least one in mode InWindow`},
		"bounds":           {Config{Policies: []Policy{{"day", "0 8 * * *", 5, ""}}}, `bounds.max: 0: must be at least 1`},
		"mode":             {Config{Mode: 9, Bounds: bounds, Policies: []Policy{{"day", "0 8 * * *", 5, ""}}}, `mode: Mode(9): must be HoldLast`},
		"outside in match": {Config{Mode: Match, Bounds: bounds, Outside: 1, Policies: []Policy{{"day", "0 8 * * *", 5, ""}}}, `outside: 1: must be 0 unless`},
		"windows in match": {Config{
			Mode: Match, Bounds: bounds, Policies: []Policy{{"day", "0 8 * * *", 5, ""}},
			Windows: []Window{{"w", "0 8 * * *", "0 9 * * *", 2, ""}},
		}, `windows: 1: must be empty unless`},
		"policies in windows": {Config{
			Mode: InWindow, Bounds: bounds, Policies: []Policy{{"day", "0 8 * * *", 5, ""}},
			Windows: []Window{{"w", "0 8 * * *", "0 9 * * *", 2, ""}},
		}, `policies: 1: must be empty in mode`},
		"outside":       {Config{Mode: InWindow, Bounds: bounds, Outside: -1, Windows: []Window{{"w", "0 8 * * *", "0 9 * * *", 2, ""}}}, `outside: -1: must not be negative`},
		"same times":    {window(Window{"day", "0 6 * * *", "00 6 * * 0-6", 5, ""}), `windows[0] "day".end: "00 6 * * 0-6": must not be the same times as start`},
		"window start":  {window(Window{"day", "0 0 30 2 *", "0 6 * * *", 5, ""}), `windows[0] "day".start: "0 0 30 2 *": never fires`},
		"window end":    {window(Window{"day", "0 6 * * *", "", 5, ""}), `windows[0] "day".end: "": must not be empty`},
		"window zone":   {window(Window{"day", "0 6 * * *", "0 7 * * *", 5, "localtime"}), `windows[0] "day".timeZone: "localtime": must be the same`},
		"window target": {window(Window{"day", "0 6 * * *", "0 7 * * *", -5, ""}), `windows[0] "day".replicas: -5: must not be negative`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(tt.config)
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v\nwant\n%s", err, tt.want)
			}
			if strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("more than one error: %v", err)
			}
			var field *scaling.FieldError
			if !errors.As(err, &field) {
				t.Errorf("%T is no FieldError", err)
			}
			if len(s.entries) != 0 {
				t.Error("a Scaler came with the error")
			}
		})
	}
}

// TestAllAtOnce reports every wrong field of one configuration.
func TestAllAtOnce(t *testing.T) {
	_, err := New(Config{
		Bounds: scaling.Bounds{Min: -1, Max: 5},
		Policies: []Policy{
			{"a", "@every 1h", -1, "Nope"},
			{"a", "0 0 31 2 *", 1, "Local"},
		},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 7 {
		t.Errorf("%d errors:\n%v", len(lines), err)
	}
}
