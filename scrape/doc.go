// Package scrape reads the metrics of inference pods and turns them into readings that algorithms decide on.
//
// It does the I/O: every algorithm is a function of what it returns.
//
// # What is read
//
// A [Metric] is one number of a pod: a sum of [Series], or a ratio of two sums. A Series names a family and its older
// names, selects by labels, and says how several series become one number, since a data-parallel engine has one series
// per rank. [Engine] knows the metrics of vLLM, SGLang, TGI, TensorRT-LLM (served by trtllm-serve or by Triton), Dynamo
// and llama.cpp; [Named] knows the rule for a family by its name. For an unknown family several series are an error and
// never a guess.
//
// Gauges are read as they are. Counters and histograms are read as their increase between two scrapes, and restarts are
// distinguished from increases. Quantiles come from the merged increase and are never averaged.
//
// # What a sweep returns
//
// [Scraper.Scrape] asks every ready [Pod] once for each [Endpoint] and returns a [Sweep]. Its readings are intervals,
// because some pods boot and others fail. With n pods that gave (num, den) and m that did not,
//
//	S = sum of num   C = sum of den   M = C*m/n
//
//	Lower = S / (C+M)
//	Upper = (S + Fill*M) / (C+M)
//
// so that for a plain gauge, where every den is 1, a missing pod counts 0 in Lower and Metric.Fill in Upper. For a quantile
// a missing pod counts as an average pod that observed nothing but 0, or nothing but Fill:
//
//	r     = q * (C+M)
//	Lower = at(r-M)
//	Upper = max(min(at(r), Fill), at(r-M))
//
// with at(k) the value below which k of the C observations of all pods lie. Upper is +Inf where no Fill limits it.
// Pods that were never ready and are not expected any more ([Pod].Stuck) count 0 in the Upper of a gauge. They do not count at
// all in that of a ratio, a mean or a quantile, because they have observed nothing.
//
// # What counts as missing
//
// A pod that is not ready is not asked. A pod whose page cannot be fetched keeps its last value while that is younger
// than Config.Staleness: an overloaded server that does not answer must not look idle. If a page says nothing usable
// about a metric (NaN, -1, a damaged line, no such family), the pod is missing for that metric at once. [Error] says which of
// the [Reason] values it was. Nothing silently becomes zero: a metric that no pod has, a fleet without pods and a histogram
// that observed nothing are errors, beside a reading that is not known.
//
// # Trust
//
// A pod is trusted with its own numbers only. Redirects must keep scheme, host and port. Loopback and
// link-local addresses are refused after the name is resolved. A bearer token is sent over https only and appears in no
// error. Bodies, series, memory, headers, times and the number of requests have limits. Proxies of the environment are not used.
//
// One case cannot be detected: a body without a length or chunks, whose connection ends exactly at the end of a line, looks
// complete. Servers that send a length or chunks, as all engines here do, are not affected.
//
// # Cost
//
// Pages are read in pieces, as they arrive. Only the lines of wanted families are parsed, into a table that is reused. So a page
// allocates no object per series, and its memory is acquired from [Config.Budget] before it is used. Sums of readings over pods and engines
// are exact before they are rounded, so that the order of pods or lines does not change a bit.
//
// # Errors
//
// [New] reports every wrong field at once, each a *scaling.FieldError. A sweep never fails as a whole: see
// [Sweep.Errors] for metrics, [PodResult] for pods, [Sweep.Credentials] for files.
package scrape
