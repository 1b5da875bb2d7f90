// Package realtime scales a fleet by thresholds on its metrics, one step at a time: the realtime scaler of Kaito's
// LLMAutoScaler.
//
//	scaler, err := realtime.New(realtime.Responsive(
//		scaling.Bounds{Min: 1, Max: 8},
//		realtime.Metric{Name: "inflight", High: realtime.InFlightHigh, Low: realtime.InFlightLow},
//	))
//	if err != nil {
//		return err // every wrong field, each a *scaling.FieldError
//	}
//	policy := scaling.New(scaler)
//
// # The rule
//
// Each metric has a high and a low threshold. [lower, upper] is its reading (see scaling.Reading). A metric says
//
//	up     when  lower > High  has held for the whole of Up.Window
//	down   when  upper < Low   has held for the whole of Down.Window
//
// Comparisons are strict. With several metrics, the fleet scales up if any metric says up, and down only if every metric says
// down. The next count is
//
//	up:    spec + Up.Step       if Up.Cooldown has passed since the last change
//	down:  spec - Down.Step     if Down.Cooldown has passed since the last change
//
// within bounds. A spec outside the bounds is moved to the nearest bound at once, regardless of windows and cooldowns. [Rule]
// documents windows and cooldowns, [Role] which metrics can scale in which direction, [Scaler.Decide] missing data.
//
// # Defaults
//
// [Kaito] has the numbers of the LLMAutoScaler proposal, [Responsive] those that did best in the simulator. In your own
// [Config] no field has a hidden default: a cooldown or window of zero means none.
//
// Source: Kaito proposal "Auto Scaler for inference workloads" (2025-06-10), realtime scaler.
package realtime
