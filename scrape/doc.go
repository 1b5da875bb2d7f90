// Package scrape reads the metrics of inference pods and turns them into readings that algorithms decide on.
//
// It is the package of this module that does I/O: everything else is a function of what it returns.
//
// # What is read
//
// A [Metric] is one number of a pod: a sum of [Series], or a ratio of two sums. A Series names a family and its older
// names, selects by labels, and says how several series become one number, since a data-parallel engine has one series
// a rank. [Engine] knows the metrics of vLLM, SGLang, TGI, TensorRT-LLM (served by trtllm-serve or by Triton), Dynamo
// and llama.cpp; [Named] knows the rule for a family by its name. Of an unknown family several series are an error and
// never a guess.
//
// Gauges are read as they are. Counters and histograms are read as their increase between two scrapes, with restarts
// told apart from increases; quantiles come from the merged increase and are never averaged.
//
// # What a sweep returns
//
// [Scraper.Scrape] asks every ready [Pod] once for each [Endpoint] and returns a [Sweep]. Its readings are intervals,
// as some pods boot and others fail. With n pods that gave (num, den) and m that did not,
//
//	S = sum of num   C = sum of den   M = C*m/n
//
//	Lower = S / (C+M)
//	Upper = (S + Fill*M) / (C+M)
//
// so that for a plain gauge, where every den is 1, a missing pod counts 0 below and Metric.Fill above. For a quantile
// a missing pod counts as an average pod that saw everything at 0, or everything at Fill:
//
//	r     = q * (C+M)
//	Lower = at(r-M)
//	Upper = max(min(at(r), Fill), at(r-M))
//
// with at(k) the value below which k of the C observations of all pods lie. Upper is +Inf where no Fill limits it.
// Pods that never were ready and are not expected any more ([Pod].Stuck) count 0 in the Upper of a gauge, and not at all
// in that of a ratio, a mean or a quantile: they have observed nothing.
//
// # What counts as missing
//
// A pod that is not ready is not asked. One whose page cannot be fetched keeps its last value while that is younger
// than Config.Staleness: an overloaded server that does not answer must not look idle. One whose page says nothing
// usable (NaN, -1, a damaged line, no such family) is missing at once, for the metric concerned. [Error] tells which of
// the [Reason] values it was. There is no silent zero: a metric that nobody has, a fleet without pods and a histogram
// that saw nothing are errors beside a reading that is not known.
//
// # Trust
//
// A pod is not trusted with more than its own numbers. Redirects leave neither scheme, host nor port; loopback and
// link-local addresses are refused after the name is resolved; a bearer token goes to https only and appears in no
// error; bodies, series, memory, headers, times and the number of requests have limits; proxies of the environment are not used.
//
// One thing cannot be told: a body that only the end of its connection delimits, cut exactly at the end of a line,
// looks complete. Servers that give a length or chunks, as all engines here do, are not concerned.
//
// # Cost
//
// Pages are read in pieces, as they come. The lines of wanted families alone are parsed, into a table that is used again:
// a page costs no object for each series, and its memory is asked of [Config.Budget] before it is taken. Sums over pods and engines are exact before they are rounded, so that no
// order of pods or lines changes a bit.
//
// # Errors
//
// [New] reports every wrong field at once, each a *scaling.FieldError. A sweep never fails as a whole: see
// [Sweep.Errors] for metrics, [PodResult] for pods, [Sweep.Credentials] for files.
package scrape
