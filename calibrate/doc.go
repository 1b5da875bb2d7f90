// Package calibrate finds a server's parameters, those of sim.Server, from what it did in production.
//
//	r, err := calibrate.Fit(points, calibrate.Options{})
//
// A step of an engine takes Base + PrefillToken * prefilled tokens + Sequence R + KVToken K, with R sequences in the batch
// and K tokens in the KV cache. While a replica computes P prompt tokens per second, the answers that it generates wait for
// them. So the mean time between two tokens of an answer, ITL, follows from
//
//	ITL (1 - PrefillToken P) = Base + Sequence R + KVToken K
//
// Each pod gives one such equation for about five minutes.
package calibrate
