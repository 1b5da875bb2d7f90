package history

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/internal/enginemetrics"
	"github.com/inferscale/inferscale/scaling"
)

// Options say which fleet to query, and with what step.
type Options struct {
	// Model is the value of the label with which the engine names its model. Empty selects all models. It must be empty for
	// engines without such a label (TGI and LlamaCPP): use Namespace and Match for them.
	Model string `json:"model"`
	// Namespace keeps only series with this label namespace.
	Namespace string `json:"namespace"`
	// Workload is the Deployment or StatefulSet of the replicas, for kube-state-metrics. Without it Kubernetes is not
	// queried.
	Workload string `json:"workload"`
	// Match are further matchers for the engine's series, such as job="vllm": a label; =, !=, =~ or !~; and a quoted value.
	Match []string `json:"match"`
	// PodLabel is the label with the name of a pod; empty means pod.
	PodLabel string `json:"podLabel"`
	// Router, which may be EPP, is also queried for the requests that arrived.
	Router Engine `json:"router"`
	// Step is the time between two values, in whole seconds; 0 means 15 s. A value is the last one of the step before it, so
	// Step should be Prometheus' scrape interval.
	Step time.Duration `json:"step"`
}

// DefaultStep is the default time between two values.
const DefaultStep = 15 * time.Second

// bucketSteps returns the number of steps between two values of a bucket, five minutes: buckets are most of what a server exposes, and
// lengths change slowly.
func bucketSteps(step time.Duration) int { return max(1, int(5*time.Minute/step)) }

// spanSteps returns the number of steps of a span: of as many values of a bucket as there are in an hour.
func spanSteps(step time.Duration) int {
	every := bucketSteps(step)
	return every * max(1, int(time.Hour/(step*time.Duration(every))))
}

// A Query is one query to Prometheus, for query_range.
type Query struct {
	Signal Signal
	Part   Part
	Router bool   // to the router, not to a pod that serves requests
	Expr   string // PromQL
	Every  int    // steps between two values
	// Labels are the labels to keep of a series, beside those that name its pod: see [Filler].
	Labels []string
}

// Step returns the time between two values of a query.
func (q *Query) Step(o *Options) time.Duration { return o.step() * time.Duration(q.Every) }

// Longest returns the longest time between two values of a query: that of buckets.
func (o *Options) Longest() time.Duration { return o.step() * time.Duration(bucketSteps(o.step())) }

func (o *Options) step() time.Duration { return cmp.Or(o.Step, DefaultStep) }

// Validate reports every wrong field at once.
func (o *Options) Validate(e Engine) error {
	var errs scaling.FieldErrors
	known := slices.Contains(Engines(), e)
	errs.Check(known, "engine", string(e), engineRule)
	errs.Check(o.Model == "" || enginemetrics.ModelLabel(string(e)) != "" || !known, "model", o.Model, "must be empty for "+string(e)+", whose series do not name it: use namespace and match")
	errs.Check(o.Step == 0 || o.Step >= time.Second && o.Step <= time.Hour && o.Step%time.Second == 0, "step", o.Step, "must be whole seconds, at least 1s and at most 1h")
	errs.Check(o.Router == "" || o.Router == EPP, "router", string(o.Router), "must be empty or EPP")
	label := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	errs.Check(o.PodLabel == "" || label.MatchString(o.PodLabel), "podLabel", o.PodLabel, "must be a name of a label")
	matcher := regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)(=|!=|=~|!~)("(?:[^"\\\n]|\\.)*")$`)
	for i, m := range o.Match {
		ok := matcher.MatchString(m)
		if ok {
			_, err := strconv.Unquote(matcher.FindStringSubmatch(m)[3])
			ok = err == nil
		}
		errs.Check(ok, fmt.Sprintf("match[%d]", i), m, `must be a matcher, as job="vllm"`)
	}
	return errs.Err()
}

// Queries returns the queries for a fleet. They ask for the signals that the engine has; [Reduce] names those that it lacks.
func Queries(e Engine, o Options) ([]Query, error) {
	if err := o.Validate(e); err != nil {
		return nil, err
	}
	var all []Query
	for _, s := range []Signal{
		Waiting, Running, KVCacheUsage, KVCapacity, TTFT, TPOT, TPOTs, PromptTokens, GenerationTokens,
		Requests, Finished, Prompted, Cached, Generated, PrefixCacheHits, PrefixCacheQueries, PrefixCacheHitRate,
	} {
		_, counted := e.source(GenerationTokens)
		if s == Finished && counted || s == Cached && e == VLLM {
			continue // the histogram counts the same; hits need the query
		}
		all = append(all, o.signal(e, s, false)...)
	}
	all = append(all, o.signal(e, CacheBlocks, false)...)
	if o.Router != "" {
		for _, s := range []Signal{Requests, InFlight, PromptTokens, GenerationTokens} {
			all = append(all, o.signal(o.Router, s, true)...)
		}
	}
	if o.Workload != "" {
		for _, s := range []Signal{SpecReplicas, ReadyReplicas, PodCreated, PodReadyTime, PodReady} {
			all = append(all, o.signal(e, s, false)...)
		}
	}
	return all, nil
}

// signal returns the queries for one signal.
func (o *Options) signal(e Engine, s Signal, router bool) []Query {
	found, ok := e.source(s)
	if !ok {
		return nil
	}
	if s.kubernetes() {
		return o.kubernetes(e, s, found)
	}
	ask := func(part Part, every int) Query {
		return o.ask(e, s, o.selector(e, s, found, part.suffix()), part, every, router)
	}
	if enginemetrics.KindOf(string(s)) != enginemetrics.Histogram {
		every := 1
		if s == CacheBlocks {
			every = bucketSteps(o.step())
		}
		return []Query{ask(Whole, every)}
	}
	tokens, _ := e.source(TPOT)
	if s == TPOTs && len(tokens.Families) > 0 {
		return []Query{ask(Bucket, bucketSteps(o.step()))}
	}
	if s == TPOT {
		return []Query{ask(Sum, 1), ask(Count, 1)}
	}
	return []Query{ask(Sum, 1), ask(Count, 1), ask(Bucket, bucketSteps(o.step()))}
}

// kubernetes returns the queries for a signal of kube-state-metrics. Unless Prometheus honours its labels, namespace and pod are
// where kube-state-metrics runs, and those of the object are called exported_namespace and exported_pod.
func (o *Options) kubernetes(e Engine, s Signal, found enginemetrics.Source) (all []Query) {
	selector := func(family, prefix string) string {
		workload := matcher(prefix+"pod", "=~", regexp.QuoteMeta(o.Workload)+"-.+")
		switch { // each family has its own label for the name
		case strings.HasPrefix(family, "kube_deployment"):
			workload = matcher("deployment", "=", o.Workload)
		case strings.HasPrefix(family, "kube_statefulset"):
			workload = matcher("statefulset", "=", o.Workload)
		}
		return family + "{" + strings.Join(append(o.matchers(found, prefix), workload), ",") + "}"
	}
	for _, family := range found.Families {
		q := o.ask(e, s, selector(family, ""), Whole, 1, false)
		if exported := selector(family, "exported_"); !s.fleetwide() || o.Namespace != "" {
			q.Expr += " or " + o.ask(e, s, exported, Whole, 1, false).Expr
		}
		all = append(all, q)
	}
	return all
}

// matchers returns the matchers of every selector: those of the source and of the namespace, whose label has a prefix.
func (o *Options) matchers(found enginemetrics.Source, prefix string) (with []string) {
	if found.Label != "" {
		with = append(with, matcher(found.Label, "=", found.Value))
	}
	if o.Namespace != "" {
		with = append(with, matcher(prefix+"namespace", "=", o.Namespace))
	}
	return with
}

func matcher(label, op, value string) string { return label + op + strconv.Quote(value) }

// ask returns one query.
func (o *Options) ask(e Engine, s Signal, selector string, part Part, every int, router bool) Query {
	labels := e.labels(s)
	if part == Bucket {
		labels = append(labels, "le")
	}
	window := o.step() * time.Duration(every)
	if s == CacheBlocks || s.kubernetes() {
		window = max(window, time.Minute) // kube-state-metrics is often scraped less often than servers
	}
	// A range of Prometheus 2 includes both of its ends, so the value of the previous step would replace a missing one.
	expr := fmt.Sprintf("last_over_time(%s[%dms])", selector, (window - time.Millisecond).Milliseconds())
	return Query{Signal: s, Part: part, Router: router, Every: every, Labels: labels, Expr: expr}
}

// selector returns the PromQL selector of an engine's signal.
func (o *Options) selector(e Engine, s Signal, found enginemetrics.Source, suffix string) string {
	var with []string
	name := ""
	if len(found.Families) == 1 {
		name = found.Families[0] + suffix
	} else {
		var names []string
		for _, f := range found.Families {
			names = append(names, regexp.QuoteMeta(f+suffix))
		}
		with = append(with, matcher("__name__", "=~", strings.Join(names, "|")))
	}
	with = append(with, o.matchers(found, "")...)
	if label := enginemetrics.ModelLabel(string(e)); label != "" && o.Model != "" && s != CacheBlocks {
		with = append(with, matcher(label, "=", o.Model))
	}
	if e != EPP {
		with = append(with, o.Match...)
	}
	return name + "{" + strings.Join(with, ",") + "}"
}
