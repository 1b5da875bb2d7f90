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
// Each metric has a high and a low threshold. With [lower, upper] its reading (see scaling.Reading), a metric says
//
//	up     when  lower > High  has held for the whole of Up.Window
//	down   when  upper < Low   has held for the whole of Down.Window
//
// Comparisons are strict. Of several metrics the highest wish wins: up if any metric says up, down only if every
// metric says down. Then
//
//	up:    spec + Up.Step       if Up.Cooldown has passed since the last change
//	down:  spec - Down.Step     if Down.Cooldown has passed since the last change
//
// within bounds. A spec outside the bounds goes to the nearest one at once, past windows and cooldowns. [Rule] says how
// windows and cooldowns count, [Role] which metrics have a say, [Scaler.Decide] what is done about missing data.
//
// # Defaults
//
// [Kaito] has the numbers of the LLMAutoScaler proposal, [Responsive] those that did best in the simulator. In a
// [Config] of one's own every field means what it says: a cooldown or window of zero is none.
//
// Source: Kaito proposal "Auto Scaler for inference workloads" (2025-06-10), realtime scaler.
package realtime
