// Package policyfile reads YAML files that say by which algorithms to scale, and with which numbers: what the binaries
// of this library take as their configuration.
//
// # A file
//
//	policies:
//	  - name: mine
//	    realtime:
//	      profile: responsive
//	      metrics:
//	        - {name: "vllm:num_requests_waiting", high: 10, low: 2}
//	      up: {step: 1, cooldown: 1m}
//	    bounds: {min: 1, max: 16}
//
// A policy has exactly one of these:
//
//	realtime, proportional, saturation   an algorithm of that package; profile names what its fields start from
//	cron                                 a timetable, as of package cronscale
//	static                               one count, for ever
//	floor                                base, a policy, lifted to what cron, a timetable, asks for
//	highest                              the most that any of members, policies, asks for
//
// and beside it, if wanted, bounds, stabilized and rateLimited, which stand around it in this order from the outside: of
// what the algorithm asks for, what is stabilized is limited. A policy in another one may have them too; its bounds are
// otherwise those of the one around it. [Example] returns a file that has everything.
//
// # Fields
//
// The fields are those of the Config structs, under the names in their JSON tags, or else their Go names with a small
// letter first; a timetable's targetReplicas is called replicas, as a window's is. A field that is given replaces what
// the profile has, also with a zero, and a list replaces the whole list. Durations are text with a unit, as "30s".
//
// Profiles come with metrics, so that they can be used as they are: see [Named].
//
// # Errors
//
// A file is read strictly: a field that is not known, given twice or of another type is an error, and so are several
// documents, aliases, and files of more than a mebibyte. All wrong fields are reported at once, each a [*PositionError]:
//
//	policy.yaml:7: policies[0].realtime.metrics[0].high: 1: must be a number above low 2
package policyfile
