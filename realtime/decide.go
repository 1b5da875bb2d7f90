package realtime

import (
	"slices"
	"time"

	"github.com/inferscale/inferscale/internal/window"
	"github.com/inferscale/inferscale/scaling"
)

// Codes of the steps. Each states the inequality that raises it; durations are in seconds.
const (
	// AboveHigh asks for scale-up: the metric has been above its high threshold for the whole window.
	AboveHigh scaling.Code = "AboveHigh lower > high, held:s >= window:s"
	// BelowLow asks for scale-down: the metric has been below its low threshold for the whole window.
	BelowLow scaling.Code = "BelowLow upper < low, held:s >= window:s"
	// UpWindow holds: the metric is above its high threshold, but not yet for long enough.
	UpWindow scaling.Code = "UpWindow lower > high, held:s < window:s"
	// DownWindow holds: the metric is below its low threshold, but not yet for long enough.
	DownWindow scaling.Code = "DownWindow upper < low, held:s < window:s"
	// Between holds: the metric is beyond neither threshold.
	Between scaling.Code = "Between lower <= high, upper >= low"
	// NoSample holds: the metric has no sample, or one older than two periods.
	NoSample scaling.Code = "NoSample"
	// Vetoed holds: the metric is above its high threshold, but may only block scale-down.
	Vetoed scaling.Code = "Vetoed lower > high"
	// Ignored holds: the metric is below its low threshold, but may only ask for scale-up.
	Ignored scaling.Code = "Ignored upper < low"
	// Cooldown cancels a change: the last one is too recent.
	Cooldown scaling.Code = "Cooldown elapsed:s < cooldown:s"
	// BeforeChange holds: the metric's sample is not newer than the last change, so that it does not show its effect.
	BeforeChange scaling.Code = "BeforeChange age:s >= elapsed:s"
	// Pending cancels a scale-up: requested replicas are not ready.
	Pending scaling.Code = "Pending ready < spec"
)

// A Scaler is the algorithm: an immutable value that New makes from a Config. The zero value decides Unknown.
type Scaler struct { //nolint:recvcheck // the value is the algorithm; inner methods take its address to spare copies
	config  Config
	metrics []metric
}

// New returns the Scaler of a configuration, or an error with every rule that it breaks.
func New(c Config) (Scaler, error) {
	if err := c.Validate(); err != nil {
		return Scaler{}, err
	}
	return Scaler{config: c, metrics: c.prepare()}, nil
}

// Kind names the algorithm and the version of its state.
func (s Scaler) Kind() scaling.Kind { return scaling.Kind{Name: "realtime", Version: 1} }

// Applied records a change that was carried out, from which the cooldowns count. A change of a count that was outside the bounds
// starts none, nor does one that changes nothing.
func (s Scaler) Applied(state State, now time.Time, from, to int32) State {
	if len(s.metrics) == 0 {
		return state
	}
	if state.turnBack(window.Milli(now)) > 0 {
		state.Seen = scaling.StampOf(now) // or the next decision would turn the times back a second time
	}
	if from == to {
		return state
	}
	state.Changed = scaling.StampOf(now)
	switch {
	case !s.config.Bounds.Contains(from):
	case to > from:
		state.LastUp = scaling.StampOf(now)
	default:
		state.LastDown = scaling.StampOf(now)
	}
	return state
}

// Decide evaluates every metric's reading and takes one step up, one step down, or none.
//
//	up    if some metric has  lower > High  for Up.Window,  and Up.Cooldown has passed
//	down  if every metric has upper < Low   for Down.Window, and Down.Cooldown has passed
//
// With the numbers of Kaito, bounds {1, 8}, High 10 and Low 2, a queue of 12 at two samples 15 s apart answers
//
//	Up 3 -> 4
//	  AboveHigh         3 -> 4    vllm:num_requests_waiting lower=12 > high=10, held=30s >= window=30s
//
// A metric without a sample counts as the widest possible interval: it cannot cause a scale-up and blocks every scale-down. If
// no metric has a sample the verdict is Unknown, with a warning for each reading if none matches a metric.
//
// One or two readings in a row without a sample, as after a restart or when a counter has just started, leave a streak as it is:
// they delay a decision until the next sample, but do not restart its window.
//
// If the clock is behind the last decision, Decide holds (code scaling.ClockBack). More than two periods after the last decision
// windows restart; if that is why nothing happens, a warning says so (scaling.DecidedTooRarely). Next is when a window can be
// covered or a cooldown is over. Decide is total: it never fails, and keeps nothing but what it returns.
func (s Scaler) Decide(state State, now time.Time, obs scaling.Observation) (_ State, d scaling.Decision) {
	if len(s.metrics) == 0 {
		return state, scaling.UnknownAt(obs.SpecReplicas, scaling.NotConfigured, "")
	}
	at := window.Milli(now)
	back := state.turnBack(at)
	gap := int64(0)
	if state.Seen.Set {
		gap = at - state.Seen.Milli // below zero if the clock is behind
	}
	state.Seen = scaling.StampOf(now)

	var looks [MaxMetrics]look
	before := state.Streaks
	for i := range s.metrics {
		m, l := &s.metrics[i], &looks[i]
		state.Streaks[i] = s.look(l, m, before.of(m.id, i), at, gap > s.bridged(), &obs)
		s.judge(l, m.Role, state.Changed, at)
	}
	clear(state.Streaks[len(s.metrics):])

	d.Start(obs.SpecReplicas)
	switch {
	case !s.config.Bounds.Contains(obs.SpecReplicas):
		d.Clamp(s.config.Bounds)
	case back > 0:
		d.To(obs.SpecReplicas, scaling.ClockBack, "", seconds(back))
	default:
		s.weigh(&d, at, &state, looks[:len(s.metrics)], &obs)
		if gap > s.bridged() {
			s.warn(&d, gap, looks[:len(s.metrics)])
		}
		if d.Acts() {
			s.restrain(&d, at, &state, &obs)
		}
	}
	return state, d
}

// A look is the evaluation of one metric at one decision.
type look struct {
	lower, upper float64
	held         int64 // how long the streak covers, milliseconds
	age          int64 // of the latest sample, milliseconds
	elapsed      int64 // since the last change, milliseconds
	code         scaling.Code
	side         int8 // +1 above High, -1 below Low
	known        bool
	stuck        bool // whether pods that were never ready count 0 in upper
	outdated     bool // whether a newer sample, which was seen already, contradicts it
	broken       bool // whether the sample before was on the same side, but too long ago
	wish         int8 // +1 scale up, -1 scale down, 0 neither
	blocks       bool // whether it blocks a scale-down
}

// look reads a metric and returns its streak, updated. lapsed says that the last decision is longer ago than a streak bridges.
func (s *Scaler) look(l *look, m *metric, old Streak, now int64, lapsed bool, obs *scaling.Observation) Streak {
	r := obs.Reading(m.Name)
	at := now
	if !r.At.IsZero() {
		at = min(now, window.Milli(r.At))
	}
	l.lower, l.upper, l.stuck = r.Lower, r.Upper, r.Stuck > 0
	reach := s.bridged() // without a sample
	l.known = r.Known() && now-at <= reach
	if !lapsed {
		reach = 2*reach - 1
	}
	switch {
	case !l.known:
		if now-old.Last > reach {
			return Streak{}
		}
		return old
	case scaling.Exceeds(r.Lower, m.High):
		l.side = +1
	case scaling.Exceeds(m.Low, r.Upper):
		l.side = -1
	}
	streak := Streak{Metric: m.id, Side: l.side, Since: at, Last: at}
	switch {
	case old.Metric != m.id:
	case at < old.Last: // a newer sample was seen already: if this one contradicts it, the streak ends and none starts
		if streak = old; l.side != old.Side {
			streak.Side, streak.Since = 0, old.Last
			l.outdated = true
		}
	case l.side == old.Side && at-old.Last <= reach:
		streak.Since = old.Since
	default:
		l.broken = l.side == old.Side
	}
	l.age = now - at
	if streak.Side != 0 {
		l.age, l.held = now-streak.Last, streak.Last-streak.Since+s.config.Period.Milliseconds()
	}
	return streak
}

// judge says what a metric asks for, and why.
func (s *Scaler) judge(l *look, role Role, changed scaling.Stamp, now int64) {
	l.blocks = role != UpOnly
	l.elapsed = now - changed.Milli
	switch side := l.side; {
	case !l.known:
		l.code = NoSample
	case side == 0:
		l.code = Between
	case side == +1 && role == DownVeto:
		l.code = Vetoed
	case side == -1 && role == UpOnly:
		l.code = Ignored
	case side == +1 && l.held < window.Millis(s.config.Up.Window):
		l.code = UpWindow
	case side == -1 && l.held < window.Millis(s.config.Down.Window):
		l.code = DownWindow
	case changed.Set && l.age >= l.elapsed:
		l.code = BeforeChange
	case l.outdated: // without a window there is none that it could not begin
		l.code, l.known = NoSample, false
	case side == +1:
		l.code, l.wish = AboveHigh, +1
	default:
		l.code, l.wish, l.blocks = BelowLow, -1, false
	}
}

// weigh combines the metrics: the highest wish wins.
func (s *Scaler) weigh(d *scaling.Decision, now int64, state *State, looks []look, obs *scaling.Observation) {
	known, blocked := false, false
	up, down := -1, -1
	for i := range looks {
		l := &looks[i]
		known = known || l.known
		blocked = blocked || l.blocks
		if l.wish == +1 && up == -1 {
			up = i
		}
		if l.wish == -1 && down == -1 {
			down = i
		}
	}
	var deciding int
	var wish int8
	switch {
	case up != -1:
		deciding, wish = up, +1
	case down != -1 && !blocked:
		deciding, wish = down, -1
	default:
		deciding = obstacle(looks)
	}
	if looks[deciding].stuck {
		r := obs.Reading(s.metrics[deciding].Name)
		d.NoteStuck(&r)
	}
	s.note(d, deciding, &looks[deciding], wish, true)
	for i := range looks {
		if i != deciding {
			s.note(d, i, &looks[i], looks[i].wish, false)
		}
		s.nextBy(d, now, &looks[i], &state.Streaks[i])
	}
	if !known {
		d.Verdict = scaling.Unknown
		s.warnUnmatched(d, obs)
	}
	d.Clamp(s.config.Bounds)
}

// obstacle returns the metric that best explains a hold: one whose up window is not covered yet, else one that blocks scale-down.
func obstacle(looks []look) int {
	for i := range looks {
		if looks[i].code == UpWindow {
			return i
		}
	}
	for i := range looks {
		if looks[i].blocks {
			return i
		}
	}
	return 0
}

// restrain cancels a change that must wait.
func (s *Scaler) restrain(d *scaling.Decision, now int64, state *State, obs *scaling.Observation) {
	rule, last := &s.config.Up, state.LastUp
	if d.Verdict == scaling.Down {
		rule, last = &s.config.Down, state.LastDown
	}
	if s.config.CooldownScope == Any {
		last = state.lastScale()
	}
	cooldown := window.Millis(rule.Cooldown)
	switch {
	case last.Set && now-last.Milli < cooldown:
		d.To(d.From, Cooldown, "", seconds(now-last.Milli), rule.Cooldown.Seconds())
		d.NextBy(time.UnixMilli(last.Milli + cooldown))
	case s.config.HoldWhilePending && d.Verdict == scaling.Up && obs.ReadyReplicas < obs.SpecReplicas:
		d.To(d.From, Pending, "", float64(obs.ReadyReplicas), float64(obs.SpecReplicas))
	}
}

// note adds a metric's step to the chain, on the deciding line or as a considered one.
func (s *Scaler) note(d *scaling.Decision, place int, l *look, wish int8, deciding bool) {
	to := d.From
	switch wish {
	case +1:
		to = scaling.Plus(d.From, s.config.Up.Step)
	case -1:
		to = scaling.Plus(d.From, -s.config.Down.Step)
	}
	m, held := &s.metrics[place], seconds(l.held)
	var numbers [4]float64
	switch l.code {
	case AboveHigh, UpWindow:
		numbers = [4]float64{l.lower, m.High, held, s.config.Up.Window.Seconds()}
	case BelowLow, DownWindow:
		numbers = [4]float64{l.upper, m.Low, held, s.config.Down.Window.Seconds()}
	case Between:
		numbers = [4]float64{l.lower, m.High, l.upper, m.Low}
	case Vetoed:
		numbers = [4]float64{l.lower, m.High}
	case Ignored:
		numbers = [4]float64{l.upper, m.Low}
	case BeforeChange:
		numbers = [4]float64{seconds(l.age), seconds(l.elapsed)}
	}
	if deciding {
		d.To(to, l.code, m.Name, numbers[:]...)
	} else {
		d.Consider(to, l.code, m.Name, numbers[:]...)
	}
}

// warnUnmatched warns of the readings if none of them matches a metric.
func (s *Scaler) warnUnmatched(d *scaling.Decision, obs *scaling.Observation) {
	d.WarnUnmatched(obs, func(name string) bool {
		return slices.ContainsFunc(s.metrics, func(m metric) bool { return m.Name == name })
	})
}

// bridged returns the longest gap between two decisions that a streak survives, in milliseconds: one sample may be missing.
func (s *Scaler) bridged() int64 { return 2 * s.config.Period.Milliseconds() }

// warn adds a warning if the gap between two decisions is what keeps a window from being covered.
func (s *Scaler) warn(d *scaling.Decision, gap int64, looks []look) {
	for i := range looks {
		if l := &looks[i]; l.broken && (l.code == UpWindow || l.code == DownWindow) {
			d.Warn(scaling.DecidedTooRarely, s.metrics[i].Name, seconds(gap), seconds(s.bridged()))
			return
		}
	}
}

// nextBy sets Next to the time at which a window can be covered.
func (s *Scaler) nextBy(d *scaling.Decision, now int64, l *look, streak *Streak) {
	length := s.config.Up.Window
	switch l.code {
	case UpWindow:
	case DownWindow:
		length = s.config.Down.Window
	default:
		return
	}
	if full := streak.Since + window.Millis(length) - s.config.Period.Milliseconds(); full > now {
		d.NextBy(time.UnixMilli(full))
	}
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }
