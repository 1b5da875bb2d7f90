package policyfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/inferscale/inferscale/proportional"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// SeedHigh and SeedLow are the thresholds of realtime/seed where a file names no metrics. Their metric is
// realtime.DefaultMetric, the requests that wait in a replica: at SeedHigh there is a queue that one replica does not
// work off at once, at SeedLow next to none.
const (
	SeedHigh = 5
	SeedLow  = 1
)

// DefaultInFlight is the metric of the other profiles where a file names none: the requests in flight, waiting and
// running, of a replica, with a target of proportional.InFlightTarget, or realtime.InFlightHigh and InFlightLow.
const DefaultInFlight = "in_flight"

// The profiles of saturation, by the modes that they have.
const (
	profileDefault = "default"
	profileLiteral = "literal"
)

// profiles returns the profiles of an algorithm, the one that counts if none is named first.
func profiles(algorithm string) []string {
	switch algorithm {
	case kindRealtime:
		return []string{"seed", "responsive"}
	case kindProportional:
		return []string{"llm", "kthena", "kpa", "hpa"}
	case kindSaturation:
		return []string{profileDefault, profileLiteral}
	}
	return nil
}

// start returns the configuration that a file's fields change.
func start(algorithm, profile string) body {
	var none scaling.Bounds
	waiting := realtime.Metric{Name: realtime.DefaultMetric, High: SeedHigh, Low: SeedLow}
	crowded := realtime.Metric{Name: DefaultInFlight, High: realtime.InFlightHigh, Low: realtime.InFlightLow}
	inFlight := proportional.Metric{Name: DefaultInFlight, Target: proportional.InFlightTarget, Measure: proportional.PerPod}
	switch algorithm + "/" + profile {
	case "realtime/seed":
		return realtimeBody{realtime.Kaito(none, waiting)}
	case "realtime/responsive":
		return realtimeBody{realtime.Responsive(none, crowded)}
	case "proportional/kpa":
		return proportionalBody{proportional.KPA(none, inFlight)}
	case "proportional/hpa":
		return proportionalBody{proportional.HPA(none, inFlight)}
	case "proportional/kthena":
		return proportionalBody{proportional.Kthena(none, inFlight)}
	case "proportional/llm":
		return proportionalBody{proportional.LLM(none, inFlight)}
	case "saturation/default", "saturation/literal":
		c := saturation.SingleConfig{Config: saturation.Defaults(), KV: saturation.DefaultKV, Queue: saturation.DefaultQueue}
		if profile == profileLiteral {
			c.Config = saturation.WVA()
		}
		return saturationBody{c}
	case kindCron + "/":
		return cronBody{}
	}
	return staticBody{}
}

// Names returns the names of the policies that Named has ready, besides static ones.
func Names() []string {
	var all []string
	for _, algorithm := range algorithms() {
		for _, profile := range profiles(algorithm) {
			all = append(all, algorithm+"/"+profile)
		}
	}
	slices.Sort(all)
	return all
}

// Named returns a policy that is ready for use: one of Names, an algorithm with one of its profiles and the metrics
// above, or static/N, which asks for N replicas.
func Named(name string) (Policy, error) {
	algorithm, profile, _ := strings.Cut(name, "/")
	if n, err := strconv.ParseUint(profile, 10, 31); err == nil && algorithm == kindStatic {
		return Policy{Name: name, Algorithm: algorithm, body: staticBody{int32(n)}}, nil
	}
	if !slices.Contains(Names(), name) {
		return Policy{}, fmt.Errorf("policy %q: must be one of %s or %s/N", name, strings.Join(Names(), ", "), kindStatic)
	}
	return Policy{Name: name, Algorithm: algorithm, Profile: profile, body: start(algorithm, profile)}, nil
}
