// Package realtime scales a fleet by thresholds on its metrics, one step at a time: the realtime scaler of Kaito's
// LLMAutoScaler.
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
// within bounds. A spec outside the bounds goes to the nearest one at once, past windows and cooldowns.
//
// # Windows are about time
//
// A sample stands for the Period that ends at its time. So with the seed's Period of 15 s a window of 30 s takes two
// breaching samples in a row and one of 300 s takes twenty. A single sample on the right side of the threshold, a
// metric without a sample, or a gap of more than two periods starts the window anew; a window that is not yet covered
// never passes. The memory of a metric is one streak: which side, since when, until when.
//
// # What is missing
//
// A metric without a sample is the widest interval there is. It cannot cause a scale-up and it blocks every
// scale-down. If no metric has a sample the verdict is Unknown.
//
// # Cooldowns
//
// A cooldown runs from the last change that was carried out, as reported by Applied; a write that was refused starts
// none. It has passed when elapsed >= cooldown. With the scope Any, the seed's, both directions count from the last
// change of either; with PerDirection each counts from its own, which suits fleets that start slowly. A repair of the
// bounds starts no cooldown. A change also spends the samples before it: whatever the cooldown, the next change needs
// a newer sample.
//
// # Defaults
//
// [Kaito] gives the numbers of the seed document: step 1 and 1, cooldown 600 s and 1800 s, window 30 s and 300 s (up
// and down), period 15 s, cooldown scope Any.
//
// # Where the seed differs
//
// The seed's loop over several metrics starts from the current count and keeps the maximum, so it can never scale
// down, not even with one metric; its text (the highest wish wins) is what holds here. Its windows pass when they are
// empty, its history mixes time and slice order, and its values are truncated to int32; none of that is kept.
//
// Source: Kaito proposal "Auto Scaler for inference workloads" (2025-06-10), realtime scaler.
package realtime
