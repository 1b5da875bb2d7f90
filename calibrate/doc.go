// Package calibrate finds a server's parameters, those of sim.Server, from what it did in production.
//
//	r, err := calibrate.Fit(points, calibrate.Options{})
//
// A step of an engine takes Base + PrefillToken * prefilled tokens + Sequence R + KVToken K. An answer that is written while a
// replica computes P prompt tokens in a second waits for them, and so the mean time between its tokens is that of
//
//	ITL (1 - PrefillToken P) = Base + Sequence R + KVToken K
//
// with R sequences in the batch and K tokens in the KV cache. Each pod gives such an equation for about five minutes.
package calibrate
