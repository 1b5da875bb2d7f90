package cronscale

import (
	"reflect"
	"testing"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

// TestDecisionSteps is a step table: the mode, the time, the count, and the decision in full.
func TestDecisionSteps(t *testing.T) {
	policies := []Policy{{"day", "0 8 * * *", 30, ""}, {"night", "0 20 * * *", 0, ""}}
	bounds := scaling.Bounds{Min: 1, Max: 10}
	for _, tt := range []struct {
		mode Mode
		now  string
		spec int32
		want string
	}{
		{HoldLast, "2026-01-15T08:00:30Z", 4, "Up 4 -> 10: Fired day target=30, ago=30s; AboveMax from=30 > max=10"},
		{HoldLast, "2026-01-15T21:30:00Z", 4, "Down 4 -> 1: Fired night target=0, ago=1h30m; BelowMin from=0 < min=1"},
		{HoldLast, "2026-01-15T21:30:00Z", 1, "Hold at 1: Fired night target=0, ago=1h30m; BelowMin from=0 < min=1; AtTarget spec=1 == target=1"},
		{HoldLast, "2026-01-15T21:30:00Z", 12, "Down 12 -> 10: AboveMax from=12 > max=10"},
		{HoldLast, "2026-01-15T21:30:00Z", 0, "Up 0 -> 1: BelowMin from=0 < min=1"},
		{Match, "2026-01-15T08:00:59.999Z", 4, "Up 4 -> 10: Fired day target=30, ago=59.999s; AboveMax from=30 > max=10"},
		{Match, "2026-01-15T08:01:00Z", 4, "Hold at 4: NoneInForce policies=2"},
		{Match, "2026-01-15T08:01:00Z", 11, "Down 11 -> 10: AboveMax from=11 > max=10"},
	} {
		s := mustNew(t, Config{Mode: tt.mode, Bounds: bounds, Policies: policies})
		_, d := s.Decide(State{}, at(t, tt.now), scaling.Observation{SpecReplicas: tt.spec})
		if got := d.Reason(); got != tt.want {
			t.Errorf("%v at %s with %d: %s\nwant %s", tt.mode, tt.now, tt.spec, got, tt.want)
		}
	}
}

// TestTiesGoToTheHighestThenTheFirstName, in any order of the policies.
func TestTiesGoToTheHighestThenTheFirstName(t *testing.T) {
	policies := []Policy{{"c", "0 8 * * *", 5, ""}, {"b", "0 8 * * 4", 9, ""}, {"a", "0 8 15 * *", 9, ""}, {"z", "30 7 * * *", 50, ""}}
	for range len(policies) {
		policies = append(policies[1:], policies[0])
		slot := mustNew(t, Config{Bounds: wide(), Policies: policies}).At(at(t, "2026-01-15T09:00:00Z"))
		if slot.Replicas != 9 || slot.Because.Subject != "a" {
			t.Errorf("%+v", slot)
		}
	}
}

// TestNextIsExactOverLongWaits has waits that a search fire by fire would not survive.
func TestNextIsExactOverLongWaits(t *testing.T) {
	const from = "2026-01-15T12:00:30Z"
	for _, tt := range []struct {
		name   string
		config Config
		want   string
	}{
		{"one policy never changes", Config{Policies: []Policy{{"p", "* * * * *", 5, ""}}}, ""},
		{"equal targets never change", Config{Policies: []Policy{{"p", "* * * * *", 5, ""}, {"q", "0 8 * * *", 5, ""}}}, ""},
		{"equal when clamped", Config{Policies: []Policy{{"p", "* * * * *", 500, ""}, {"q", "0 8 * * *", 600, ""}}}, ""},
		{"outvoted always", Config{Policies: []Policy{{"p", "* * * * *", 5, ""}, {"q", "0 8 * * *", 2, ""}}}, ""},
		{"a year of minutes", Config{Policies: []Policy{{"p", "* * * * *", 5, ""}, {"q", "0 9 10 1 *", 7, ""}}}, "2027-01-10T09:00:00Z"},
		{"leap day", Config{Policies: []Policy{{"p", "0 0 1 1 *", 5, ""}, {"q", "0 0 29 2 *", 7, ""}}}, "2028-02-29T00:00:00Z"},
		{"match all week", Config{Mode: Match, Policies: []Policy{{"p", "* * * * 1-5", 5, ""}}}, "2026-01-17T00:00:00Z"},
		{"match all summer", Config{Mode: Match, Policies: []Policy{{"p", "* * * 1-6 *", 5, ""}}}, "2026-07-01T00:00:00Z"},
		{"match for ever", Config{Mode: Match, Policies: []Policy{{"p", "* * * * *", 5, ""}}}, ""},
		{"match in a row", Config{Mode: Match, Policies: []Policy{{"p", "0-29 12 * * *", 5, ""}, {"q", "5 * * * *", 2, ""}}}, "2026-01-15T12:30:00Z"},
		{"match, a higher one in between", Config{Mode: Match, Policies: []Policy{{"p", "* * * * *", 5, ""}, {"q", "5 * * * *", 9, ""}}}, "2026-01-15T12:05:00Z"},
		{"window without an end nearby", Config{Mode: InWindow, Windows: []Window{{"w", "* 4-23 * * *", "30 3 1 7 *", 5, ""}}}, "2026-07-01T03:30:00Z"},
		{"outside is the same", Config{Mode: InWindow, Outside: 5, Windows: []Window{{"w", "0 8 * * *", "0 9 * * *", 5, ""}}}, ""},
		{"windows that touch", Config{Mode: InWindow, Windows: []Window{
			{"a", "0 12 * * *", "0 18 * * *", 5, ""}, {"b", "0 18 * * *", "0 22 * * *", 5, ""},
		}}, "2026-01-15T22:00:00Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Bounds = wide()
			s := mustNew(t, tt.config)
			next, ok := s.Next(at(t, from))
			got := ""
			if ok {
				got = next.Format(time.RFC3339)
			}
			if got != tt.want {
				t.Errorf("Next is %q, want %q", got, tt.want)
			}
			if slot := s.At(at(t, from)); !slot.Next.Equal(next) {
				t.Errorf("At has Next %v, Next has %v", slot.Next, next)
			}
		})
	}
}

// TestNextEndsEarlyRatherThanNever: two schedules that always fire together in two zones, one outvoted for ever.
func TestNextEndsEarlyRatherThanNever(t *testing.T) {
	s := mustNew(t, Config{Bounds: wide(), Policies: []Policy{
		{"high", "0 * * * *", 5, ""}, {"low", "0 * * * *", 2, "Asia/Tokyo"},
	}})
	now := at(t, "2026-01-15T12:00:30Z")
	next, ok := s.Next(now)
	if want := now.Truncate(time.Hour).Add(1000 * time.Hour); !ok || !next.Equal(want) {
		t.Errorf("Next is %v %v, want %v", next, ok, want)
	}
	n := 0
	for range s.Timeline(now, now.Add(3500*time.Hour)) {
		n++
	}
	if n != 1 {
		t.Errorf("a timeline of %d answers, want one: nothing changes", n)
	}
}

// TestZeroScalerHolds: a Scaler that nobody made takes no fleet down.
func TestZeroScalerHolds(t *testing.T) {
	var s Scaler
	now := at(t, "2026-01-15T12:00:00Z")
	_, d := s.Decide(State{}, now, scaling.Observation{SpecReplicas: 3})
	if d.Verdict != scaling.Unknown || d.Code() != scaling.NotConfigured {
		t.Errorf("%s", d.Explain())
	}
	if slot := s.At(now); slot.InForce || !slot.Next.IsZero() {
		t.Errorf("%+v", slot)
	}
	if next, ok := s.Next(now); ok {
		t.Errorf("Next is %v", next)
	}
	for c := range s.Timeline(now, now.AddDate(1, 0, 0)) {
		if c.InForce {
			t.Errorf("%+v", c)
		}
	}
}

// TestUnderAFloor is the timetable under a policy that holds: it lifts, and never lowers.
func TestUnderAFloor(t *testing.T) {
	s := mustNew(t, Config{Bounds: wide(), Policies: []Policy{{"day", "0 8 * * *", 5, ""}, {"night", "0 20 * * *", 1, ""}}})
	base := mustNew(t, Config{Mode: Match, Bounds: wide(), Policies: []Policy{{"never now", "0 0 29 2 *", 9, ""}}})
	policy, err := scaling.Floor(scaling.New(base), s, scaling.Bounds{Min: 1, Max: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		now  string
		spec int32
		want string
	}{
		{"2026-01-15T12:00:00Z", 3, "Up 3 -> 5"},
		{"2026-01-15T12:00:00Z", 7, "Hold at 7"},
		{"2026-01-15T22:00:00Z", 7, "Hold at 7"},
	} {
		d := policy.Decide(at(t, tt.now), scaling.Observation{SpecReplicas: tt.spec})
		if got := d.Reason(); len(got) < len(tt.want) || got[:len(tt.want)] != tt.want {
			t.Errorf("at %s: %s, want %s", tt.now, got, tt.want)
		}
	}
}

// TestModeString names every mode, and others by number.
func TestModeString(t *testing.T) {
	for mode, want := range map[Mode]string{HoldLast: "HoldLast", Match: "Match", InWindow: "InWindow", -1: "Mode(-1)"} {
		if got := mode.String(); got != want {
			t.Errorf("%d: %q, want %q", int8(mode), got, want)
		}
	}
}

// TestDecideDoesNotAllocate, with the memo or without.
func TestDecideDoesNotAllocate(t *testing.T) {
	s := fourPolicies(t)
	now := at(t, "2026-06-15T12:00:00Z")
	obs := scaling.Observation{SpecReplicas: 3}
	var state State
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(time.Hour)
		state, _ = s.Decide(state, now, obs)
		_ = s.At(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestOnlyWhatNeverDecidesIsLeftOut: a lower policy whose every fire a higher one shares can be dropped, a window that
// starts with a higher one cannot, and neither can a policy that shares only nearly all fires.
func TestOnlyWhatNeverDecidesIsLeftOut(t *testing.T) {
	s := mustNew(t, Config{Mode: Match, Bounds: wide(), Policies: []Policy{
		{"low", "0 8 1 * *", 2, ""}, {"high", "0 */8 * * *", 9, ""}, {"other zone", "0 8 * * *", 1, "Asia/Tokyo"},
	}})
	if n := len(s.entries); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
	if _, d := s.Decide(State{}, at(t, "2026-01-15T12:00:00Z"), scaling.Observation{SpecReplicas: 3}); d.Reason() != "Hold at 3: NoneInForce policies=3" {
		t.Errorf("%s", d.Reason())
	}
	for _, policies := range [][]Policy{
		{{"low", "0 8 1 * *", 2, ""}, {"high", "0 8 1,15 * *", 9, ""}}, {{"low", "0 8 * * 1", 2, ""}, {"high", "0 8 * * 1-5", 9, ""}},
	} {
		if s := mustNew(t, Config{Bounds: wide(), Policies: policies}); len(s.entries) != 1 || s.entries[0].name != "high" {
			t.Errorf("%+v", s.entries)
		}
	}
	slotTable(t, Config{Mode: InWindow, Bounds: wide(), Windows: []Window{
		{"short", "0 12 * * *", "0 18 * * *", 9, ""}, {"long", "0 12 * * *", "0 22 * * *", 3, ""},
	}}, [][2]string{{"2026-01-16T17:00:00Z", "short"}, {"2026-01-16T19:00:00Z", "long"}})
	// On Sunday, 1 February, only the policy of the first day or Monday fires.
	slotTable(t, Config{Bounds: wide(), Policies: []Policy{
		{"weekdays", "0 0 * * 1-5", 9, ""}, {"first or Monday", "0 0 1 * 1", 2, ""},
	}}, [][2]string{{"2026-01-31T12:00:00Z", "weekdays"}, {"2026-02-01T12:00:00Z", "first or Monday"}})
}

// TestAPolicyOfOtherDaysIsNotLeftOut: of the week or of the month, with the hours of a higher one.
func TestAPolicyOfOtherDaysIsNotLeftOut(t *testing.T) {
	slotTable(t, Config{Bounds: wide(), Policies: []Policy{
		{"weekdays", "0 8 * * 1-5", 9, ""}, {"Saturdays", "0 8 * * 6", 2, ""},
	}}, [][2]string{{"2026-01-16T12:00:00Z", "weekdays"}, {"2026-01-17T12:00:00Z", "Saturdays"}})
	slotTable(t, Config{Bounds: wide(), Policies: []Policy{
		{"first half", "0 8 1-15 * *", 9, ""}, {"second half", "0 8 16-31 * *", 2, ""},
	}}, [][2]string{{"2026-01-15T12:00:00Z", "first half"}, {"2026-01-16T12:00:00Z", "second half"}})
}

// TestSchedulesThatDifferInWriting: a day of the week or of the month that is any day makes every day one.
func TestSchedulesThatDifferInWriting(t *testing.T) {
	daily := mustParse(t, "0 0 * * *")
	for _, expr := range []string{"0 0 1-31 * 1", "0 0 1 * 0-6", "0 0 1-31 * 0-6", "0 0 * * 0-6", "0 0 1-31 * *"} {
		if s := mustParse(t, expr); s != daily {
			t.Errorf("%q is %+v, want %+v", expr, s, daily)
		}
	}
}

// TestHowLongAgo: the step says since when, to the second.
func TestHowLongAgo(t *testing.T) {
	s := mustNew(t, Config{Bounds: wide(), Policies: []Policy{{"day", "0 8 * * *", 5, ""}}})
	if got := s.At(at(t, "2026-01-15T09:00:00Z")).Because.Numbers[1]; got != 3600 {
		t.Errorf("%v s ago, want 3600", got)
	}
}

// TestATimetableOfOneCountNeverChanges: which is known at once, and for certain; so is that one does not before the year 10000.
func TestATimetableOfOneCountNeverChanges(t *testing.T) {
	s := mustNew(t, Config{Bounds: wide(), Policies: []Policy{{"day", "0 8 * * *", 5, ""}, {"night", "0 20 * * *", 5, ""}}})
	now := at(t, "2026-01-15T09:00:00Z").Unix()
	if next, exact := s.change(s.answer(now), now); next != endless || !exact {
		t.Errorf("changes at %d, exact %v", next, exact)
	}
	s = mustNew(t, Config{Bounds: wide(), Policies: []Policy{{"one", "0 0 1 1 *", 5, ""}, {"two", "0 0 1 2 *", 2, ""}}})
	now = at(t, "9999-06-01T09:00:00Z").Unix()
	if next, exact := s.change(s.answer(now), now); next != endless || !exact {
		t.Errorf("changes after the year 9999, at %d, exact %v", next, exact)
	}
}

// TestAStateOfAnotherTimetable: what it remembers is the other's answer, whatever the two differ in.
func TestAStateOfAnotherTimetable(t *testing.T) {
	policies := []Policy{{"day", "0 8 * * *", 5, ""}, {"night", "0 20 * * *", 1, ""}}
	windows := []Window{{"day", "0 8 * * *", "0 20 * * *", 5, ""}}
	obs, now := scaling.Observation{SpecReplicas: 3}, at(t, "2026-01-15T22:00:00Z")
	later := []Policy{{"day", "0 8 * * *", 5, ""}, {"night", "0 20 * * *", 2, ""}}
	for name, pair := range map[string][2]Config{
		"policy":  {{Bounds: wide(), Policies: policies}, {Bounds: wide(), Policies: later}},
		"mode":    {{Bounds: wide(), Policies: policies}, {Mode: Match, Bounds: wide(), Policies: policies}},
		"bounds":  {{Bounds: wide(), Policies: policies}, {Bounds: scaling.Bounds{Min: 5, Max: 9}, Policies: policies}},
		"outside": {{Mode: InWindow, Bounds: wide(), Windows: windows}, {Mode: InWindow, Bounds: wide(), Windows: windows, Outside: 2}},
	} {
		one, other := mustNew(t, pair[0]), mustNew(t, pair[1])
		state, _ := one.Decide(State{}, now, obs)
		_, got := other.Decide(state, now, obs)
		if _, want := other.Decide(State{}, now, obs); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %snext %v, fresh\n%snext %v", name, got.Explain(), got.Next, want.Explain(), want.Next)
		}
	}
}

// TestTheTimesThatAreLookedAt: the years 1 to 9999; before and after them nothing is in force.
func TestTheTimesThatAreLookedAt(t *testing.T) {
	s := mustNew(t, Config{Mode: InWindow, Bounds: wide(), Outside: 2, Windows: []Window{{"day", "0 8 * * *", "0 20 * * *", 5, ""}}})
	first, end := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for now, want := range map[time.Time]bool{first: true, first.Add(-1): false, end.Add(-1): true, end: false} {
		if slot := s.At(now); slot.InForce != want {
			t.Errorf("at %v: %+v", now, slot)
		}
	}
}

// TestMatchRunEndsWithTheRepeatedHour: "* * * * *" matches on and on, but not while an hour is repeated.
func TestMatchRunEndsWithTheRepeatedHour(t *testing.T) {
	s := mustNew(t, Config{Mode: Match, Bounds: wide(), Policies: []Policy{{"p", "* * * * *", 5, "America/New_York"}}})
	now := at(t, "2026-10-31T12:00:00Z")
	for _, want := range []string{"2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z", "2027-11-07T06:00:00Z"} {
		next, ok := s.Next(now)
		if !ok || !next.Equal(at(t, want)) {
			t.Fatalf("after %v comes %v %v, want %s", now, next, ok, want)
		}
		now = next
	}
}

// TestMatchEndsWhereAnHourIsRepeated: in the minute before it, too.
func TestMatchEndsWhereAnHourIsRepeated(t *testing.T) {
	s := mustNew(t, Config{Mode: Match, Bounds: wide(), Policies: []Policy{{"p", "* * * * *", 5, "America/New_York"}}})
	if next, ok := s.Next(at(t, "2026-11-01T05:59:30Z")); !ok || !next.Equal(at(t, "2026-11-01T06:00:00Z")) {
		t.Errorf("Next is %v %v", next, ok)
	}
}

// TestBackIntoTheMinuteOfAFire: what was remembered of the time after it is not the answer.
func TestBackIntoTheMinuteOfAFire(t *testing.T) {
	s := mustNew(t, Config{Mode: Match, Bounds: wide(), Policies: []Policy{{"day", "0 8 * * *", 5, ""}}})
	obs := scaling.Observation{SpecReplicas: 3}
	state, d := s.Decide(State{}, at(t, "2026-01-15T08:05:00Z"), obs)
	if d.Acts() {
		t.Errorf("%s", d.Explain())
	}
	state, d = s.Decide(state, at(t, "2026-01-15T08:00:30Z"), obs)
	if d.Replicas != 5 {
		t.Errorf("%s", d.Explain())
	}
	if _, d = s.Decide(state, at(t, "2026-01-15T07:59:30Z"), obs); d.Acts() {
		t.Errorf("before the fire: %s", d.Explain())
	}
}

// TestBackBeforeAStartAndAnEnd: what was remembered of the time after them is not the answer.
func TestBackBeforeAStartAndAnEnd(t *testing.T) {
	s := mustNew(t, Config{Mode: InWindow, Bounds: wide(), Outside: 1, Windows: []Window{{"day", "0 8 * * *", "0 20 * * *", 5, ""}}})
	for _, row := range []struct {
		now, back   string
		then, later int32
	}{{"2026-01-15T08:05:00Z", "2026-01-15T07:55:00Z", 5, 1}, {"2026-01-15T20:05:00Z", "2026-01-15T19:55:00Z", 1, 5}} {
		obs := scaling.Observation{SpecReplicas: 3}
		state, d := s.Decide(State{}, at(t, row.now), obs)
		if d.Replicas != row.then {
			t.Errorf("at %s: %s", row.now, d.Explain())
		}
		if _, d = s.Decide(state, at(t, row.back), obs); d.Replicas != row.later {
			t.Errorf("back at %s: %s", row.back, d.Explain())
		}
	}
}

// TestAWindowThatEndsAndStartsInOneMinuteIsOpen: the start belongs to it, the end does not.
func TestAWindowThatEndsAndStartsInOneMinuteIsOpen(t *testing.T) {
	slotTable(t, Config{Mode: InWindow, Bounds: wide(), Windows: []Window{{"day", "0 8 * * *", "0 8,20 * * *", 5, ""}}}, [][2]string{
		{"2026-01-15T08:00:00Z", "day"}, {"2026-01-15T19:59:59Z", "day"}, {"2026-01-15T20:00:00Z", "outside"},
	})
}

// TestWhatIsStoredAndSaid: the kind and version of the state, and that a window is open.
func TestWhatIsStoredAndSaid(t *testing.T) {
	s := mustNew(t, Config{Mode: InWindow, Bounds: wide(), Windows: []Window{{"day", "0 8 * * *", "0 20 * * *", 5, ""}}})
	if data, err := scaling.New(s).MarshalJSON(); err != nil || string(data) != `{"kind":"cron","version":1,"state":{}}` {
		t.Errorf("%s %v", data, err)
	}
	if slot := s.At(at(t, "2026-01-15T09:00:00Z")); slot.Because.Code != Opened {
		t.Errorf("%+v", slot)
	}
}
