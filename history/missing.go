package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// missing adds notes on what is unknown, and the consequences.
func (r *reducer) missing() {
	f := r.fleet
	note := func(s Signal, format string, args ...any) {
		f.Notes = append(f.Notes, Note{s, fmt.Sprintf(format, args...)})
	}
	for _, s := range []struct {
		signal Signal
		costs  string
	}{
		{Waiting, "queues are not known: arrivals are known when requests finish only"},
		{Running, "batches are not known: arrivals are known when requests finish only, and a server can be calibrated by its times between tokens alone"},
		{KVCacheUsage, "how full caches were is not known: what a token in the cache costs, and how many fit, cannot be calibrated"},
		{TTFT, "recorded times to the first token are not known: the simulation cannot be checked against them, and prefill is calibrated by its effect on decoding alone"},
		{TPOT, "recorded times between tokens are not known: a server cannot be calibrated from this history"},
		{PromptTokens, "lengths of prompts are not known: there is no traffic to simulate"},
		{GenerationTokens, "lengths of answers are not known: there is no traffic to simulate"},
		{SpecReplicas, "how many replicas were asked for is not known: pods that had values are counted as ready ones, and what starting ones cost is left out"},
		{PodCreated, "when pods were created is not known: the time that a start takes must be said"},
	} {
		if r.has[s.signal] || len(r.routers) > 0 && (s.signal == PromptTokens || s.signal == GenerationTokens) && f.lengths() {
			continue
		}
		note(s.signal, "missing: %s", s.costs)
	}
	if !r.has[PrefixCacheQueries] && !r.has[PrefixCacheHitRate] && !r.has[Cached] {
		note(PrefixCacheHits, "missing: prompts are taken to be computed whole. Where a prefix cache is on, prefill will seem faster than it is")
	}
	if f.Engine == Dynamo {
		note(Running, "a frontend counts for all of its workers, and says nothing of each: a server cannot be calibrated, and frontends are not taken for replicas. Give -server and -workload, or import the engine that the workers run")
	}
	if f.Engine.perRequest() && r.has[TPOT] {
		note(TPOT, "counted by request and not by token, when a request ends: how many sequences ran is known of the scrapes alone, and a server is known less well")
	}
	if f.Engine == TGI && r.has[TPOT] {
		note(TPOT, "a request's time per token has its prefill in it: a step seems longer than it is where answers are short")
	}
	if f.Engine == TGI && r.has[KVCacheUsage] {
		note(KVCacheUsage, "has what is reserved for answers at their longest, not what is in the cache: what a token there costs seems less than it is")
	}
	if !r.has[Prompted] && r.has[PromptTokens] {
		note(Prompted, "missing: tokens of prompts are known when requests finish, too late by as long as an answer takes")
	}
	if r.lacks[Finished] {
		note(Finished, "missing: requests are counted at their first token, and those between their queue and it are not")
	}
	if !r.has[CacheBlocks] && r.has[KVCacheUsage] {
		note(CacheBlocks, "missing: the size of the KV cache in tokens is not known, only the share in use")
	}
	if came, _ := f.Requests(); came > 0 {
		r.missingBuckets(note)
	}
	r.missingOfPods(note)
	if n := r.apart[SpecReplicas]; n > 0 {
		note(SpecReplicas, "series of workloads of one name, as in two clusters or of two kinds, differ for %s: which is the one of these pods is not known", time.Duration(n)*f.Step)
	}
	if n := r.apart[PodCreated]; n > 0 {
		note(PodCreated, "%d names are of several pods at once, as in two clusters: when these were created, and ready, is not known", n)
	}
	repairs := &f.Repairs
	if repairs.Restarts > 0 {
		note(Finished, "%d restarts of pods: what was counted between the last scrape and a restart is lost, and %.0f requests that were in flight come twice if they were sent again", repairs.Restarts, r.doubles)
	}
	if repairs.Gaps > 0 {
		note(Waiting, "%d gaps of %s together: %d requests came within them, spread evenly as it is not known when", repairs.Gaps, time.Duration(repairs.GapSteps)*f.Step, repairs.Spread)
	}
	if r.baseless > 0 {
		note(Finished, "%d pods have counts from before they were first seen, which cannot be told from later ones: what came between is not known", r.baseless)
	}
	if repairs.Duplicated > 0 {
		note(Finished, "%d pods have series that are there twice, as where two servers or two jobs scrape them: one of each is counted", repairs.Duplicated)
	}
	if r.every > 1 {
		note(Waiting, "scraped every %s, while values are %s apart: ask with that step", r.scrape, f.Step)
	}
	for _, c := range []struct {
		signal Signal
		values []float64
	}{{Finished, f.Arrivals}, {SpecReplicas, f.Spec}} {
		if n := count(c.values); n > 0 && (c.signal == Finished || r.has[SpecReplicas]) {
			note(c.signal, "not known for %s of %s", time.Duration(n)*f.Step, time.Duration(len(c.values))*f.Step)
		}
	}
}

// missingBuckets adds notes on histograms with a sum and a count alone.
func (r *reducer) missingBuckets(note func(s Signal, format string, args ...any)) {
	for _, s := range []Signal{PromptTokens, GenerationTokens, TTFT, TPOTs} {
		if !r.has[s] && (s != TPOTs || !r.has[TPOT]) {
			continue // missing altogether
		}
		if !slices.ContainsFunc(r.fleet.Spans, func(span Span) bool { return span.mixture(s).Total() > 0 }) {
			found, _ := r.dump.Engine.source(s)
			note(s, "has no buckets: there must be values of %s_bucket, among them those with le=\"+Inf\" and another bound", strings.Join(found.Families, "_bucket or "))
		}
	}
}

// missingOfPods adds notes on signals that some pods have and others lack.
func (r *reducer) missingOfPods(note func(s Signal, format string, args ...any)) {
	for _, s := range []Signal{Waiting, Running, KVCacheUsage, TTFT, TPOT, PromptTokens, GenerationTokens, Prompted, PrefixCacheQueries} {
		lacking := 0
		for _, p := range r.pods {
			has := false
			for at := range p.series {
				has = has || at.signal == s
			}
			if !has {
				lacking++
			}
		}
		if lacking > 0 && r.has[s] {
			note(s, "missing of %d of %d pods", lacking, len(r.pods))
		}
	}
}

func count(values []float64) (unknown int) {
	for _, x := range values {
		if math.IsNaN(x) {
			unknown++
		}
	}
	return unknown
}

// lengths reports whether the lengths of prompts and of answers are known at all.
func (f *Fleet) lengths() bool {
	return slices.ContainsFunc(f.Spans, func(s Span) bool { return s.Prompts.Total() > 0 }) &&
		slices.ContainsFunc(f.Spans, func(s Span) bool { return s.Answers.Total() > 0 })
}
