package capacity

import (
	"cmp"
	"slices"

	"github.com/inferscale/inferscale/sim"
)

// reprice sets the work of a token for the present lengths, of whose prompts the share hits is not computed, and converts the
// capacities that were found to the new unit.
func (t *Tuning) reprice(server *sim.Server, slo sim.SLO, prompt, answer, hits float64) {
	p, a := server.TokenWork(slo, prompt, answer)
	prompt *= 1 - hits
	if was := t.work(prompt, answer); was > 0 {
		scale := (p*prompt + a*answer) / was
		t.Capacity *= scale
		for i := range t.Found {
			t.Found[i] *= scale
		}
	}
	t.PromptToken, t.AnswerToken = p, a
}

// slowness returns the factor by which the server's times must be multiplied to explain the measured times per token. It is the
// step-time law, with the sequences R, cached tokens K and prompt tokens P/s that a replica had,
//
//	f (Base + Sequence R + KVToken K) = ITL (1 - f PrefillToken P)
//
// solved for f between any two neighbouring samples of the last five minutes, or of the longer time that has 200 answers. R, K and P
// are means over the time in which the answers that finished were generated. The result is the median of these f, weighted by
// answers. With fewer than 200 answers it stays as it was, at first 1. Two samples count as at most 40 of these 200, and weigh at
// most a fifth of all: between those at which a fleet drains, what it had in flight is not the mean of both. Answers are left out if
// more than one request per replica waited at any sample while they were generated: the law describes a server that is not overloaded,
// and where others have just started, the replica that they wait for is slower than the mean load says.
func (p *Past) slowness(v *sim.Server) float64 {
	type estimate struct{ factor, weight float64 }
	var all []estimate
	total, weight := 0.0, 0.0
	for i := len(p.Samples) - 1; i > 0 && (total < 200 || p.Samples[i].At > p.Samples[len(p.Samples)-1].At-tuneEvery); i-- {
		a, b := &p.Samples[i-1], &p.Samples[i]
		answers := b.Timed - a.Timed
		if answers <= 0 {
			continue
		}
		itl := (b.TPOT - a.TPOT) / answers
		took := 0.0
		if done := b.Finished - a.Finished; done > 0 {
			took = (b.Generated - a.Generated) / done * itl
		}
		if d := p.law(v, i, took, itl); d > 0 && itl > 0 {
			all = append(all, estimate{itl / d, answers})
			total += min(answers, 40)
			weight += answers
		}
	}
	if total < 200 {
		return p.Last.slower(v)
	}
	slices.SortFunc(all, func(a, b estimate) int { return cmp.Compare(a.factor, b.factor) })
	fifth := weight
	for range 50 { // until none weighs more than a fifth of what is left: there are five pairs at least
		fifth, weight = weight/5, 0
		for _, e := range all {
			weight += min(e.weight, fifth)
		}
	}
	half := weight / 2
	for _, e := range all {
		if half -= min(e.weight, fifth); half <= 0 {
			return min(max(e.factor, 0.2), 5)
		}
	}
	return 1
}

// slower is Slowness, or 1 if nothing is known of a server with these times.
func (t *Tuning) slower(v *sim.Server) float64 {
	if t.Slowness == 0 || t.outdated(v) {
		return 1
	}
	return t.Slowness
}

// outdated reports whether Slowness is that of a server with other times.
func (t *Tuning) outdated(v *sim.Server) bool { return t.Law != [4]float64{} && t.Law != times(v) }

func times(v *sim.Server) [4]float64 {
	return [...]float64{v.Base, v.PrefillToken, v.Sequence, v.KVToken}
}

// law returns the time per token by the step-time law for the answers that finished before a sample: its mean over the time that
// they took at itl seconds per token. It is 0 if nothing is known, or if more than one request per replica waited in that time.
func (p *Past) law(v *sim.Server, i int, took, itl float64) float64 {
	sum, span := 0.0, 0.0
	for end := p.Samples[i].At; i > 0; i-- {
		a, b := &p.Samples[i-1], &p.Samples[i]
		if span > 0 && b.At <= end-took {
			break
		}
		if max(a.Waiting, b.Waiting) > float64(b.Ready) {
			return 0
		}
		dt, n := b.At-a.At, float64(b.Ready-b.Silent)
		if dt <= 0 || n <= 0 {
			continue
		}
		step := v.Base + v.Sequence*(a.Running+b.Running)/2/n + v.KVToken*(a.KV+b.KV)/2*float64(v.KVTokens)/n
		load := v.PrefillToken * max(0, b.Prefilled-a.Prefilled) / dt / n
		sum += (step + itl*load) * dt
		span += dt
	}
	if span == 0 {
		return 0
	}
	return sum / span
}

func slower(v sim.Server, factor float64) sim.Server {
	v.Base *= factor
	v.PrefillToken *= factor
	v.Sequence *= factor
	v.KVToken *= factor
	return v
}
