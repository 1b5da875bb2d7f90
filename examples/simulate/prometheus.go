package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/inferscale/inferscale/examples/internal/cli"
	"github.com/inferscale/inferscale/history"
	"github.com/inferscale/inferscale/scaling"
)

// A remote is a Prometheus, or what speaks like one, and how it is asked.
type remote struct {
	url, httpConfig, tokenFile, ca, cert, key, tenant string

	engine    string
	options   history.Options
	maxSeries int
	maxBytes  int64
	end       time.Time
	length    time.Duration
	stderr    io.Writer
}

const (
	// mostPoints is how many values of a series are asked for at a time: Prometheus refuses more than 11,000.
	mostPoints = 10_000
	// answerIn is how long one answer may take.
	answerIn = 5 * time.Minute
)

// client returns the client of the remote, which counts what it reads.
func (r *remote) client() (prometheus.API, *carrier, error) {
	base, err := url.Parse(r.url)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, nil, misuse("-prometheus: must be a URL, as http://localhost:9090")
	}
	if base.User != nil {
		return nil, nil, misuse("-prometheus: must not have a password in it, use -http-config or -bearer-token-file")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.ca != "" {
		pem, err := cli.ReadFile(r.ca, cli.Document)
		if err != nil {
			return nil, nil, misuse("-tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, nil, misuse("-tls-ca %s: has no certificate", r.ca)
		}
	}
	if r.cert != "" || r.key != "" {
		pair, err := tls.LoadX509KeyPair(r.cert, r.key)
		if err != nil {
			return nil, nil, misuse("-tls-cert, -tls-key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport.TLSClientConfig = config
	c := &carrier{base: transport, to: base, header: http.Header{}, left: r.maxBytes, most: r.maxBytes, stderr: r.stderr, pause: pause}
	if r.httpConfig != "" {
		if err := r.configure(c, transport); err != nil {
			return nil, nil, misuse("-http-config %s: %w", r.httpConfig, err)
		}
	}
	if r.tenant != "" {
		c.header.Set(tenantHeader, r.tenant)
	}
	if r.tokenFile != "" {
		data, err := cli.ReadFile(r.tokenFile, cli.Document)
		if err != nil {
			return nil, nil, misuse("-bearer-token-file: %w", err)
		}
		token := strings.TrimSpace(string(data))
		if token == "" || strings.ContainsAny(token, "\r\n") {
			return nil, nil, misuse("-bearer-token-file %s: must have one line", r.tokenFile)
		}
		c.header.Set("Authorization", "Bearer "+token)
		c.hide(token)
	}
	client, err := api.NewClient(api.Config{Address: r.url, Client: &http.Client{
		Transport: c,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("redirected: give -prometheus the address that answers")
		},
	}})
	if err != nil {
		return nil, nil, fmt.Errorf("-prometheus: %w", err)
	}
	return prometheus.NewAPI(&censor{client, c}), c, nil
}

// fetch asks for everything.
func (r *remote) fetch(ctx context.Context) (*history.Dump, error) {
	ask, c, err := r.client()
	if err != nil {
		return nil, err
	}
	engine := history.Engine(r.engine)
	if r.engine == "" {
		if engine, err = r.detect(ctx, ask); err != nil {
			return nil, err
		}
	}
	start, err := r.begins(ctx, ask, engine)
	if err != nil {
		return nil, err
	}
	f, err := history.NewFiller(engine, r.options, start, r.end)
	if err != nil {
		return nil, r.flagged(err)
	}
	queries, err := history.Queries(engine, r.options)
	if err != nil {
		return nil, r.flagged(err)
	}
	p := &fetching{remote: r, ask: ask, carrier: c, filler: f, series: map[string]bool{}, warned: map[string]bool{}, reported: time.Now()}
	if err := p.fits(ctx, queries); err != nil {
		return nil, err
	}
	if err := p.all(ctx, queries); err != nil {
		return nil, err
	}
	if r.options.Workload == "" {
		if err := p.kubernetes(ctx, engine); err != nil {
			return nil, err
		}
	}
	d, err := f.Dump()
	if err != nil {
		return nil, r.flagged(err)
	}
	return d, nil
}

// flagged names the flags of what package history does not take, not its fields.
func (r *remote) flagged(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, one := range all.Unwrap() {
			errs = append(errs, r.flagged(one))
		}
		return errors.Join(errs...)
	}
	f, ok := errors.AsType[*scaling.FieldError](err)
	if !ok {
		return &usageError{err}
	}
	value := f.Value
	if text, ok := value.(string); ok {
		value = strconv.Quote(text)
	}
	switch field, _, _ := strings.Cut(f.Field, "["); {
	case field == "model" && r.engine != "" && r.options.Validate(history.Engine(r.engine)) != nil:
		return namesNoModel(history.Engine(r.engine))
	case field == "namespace" && r.options.Namespace == "":
		return misuse("-namespace: must be given, as there are pods in %v", f.Value)
	case field == "start" || field == "end":
		return misuse("-range %s: must begin and end within 1970 and 2200, and be at most %d times -step, %s", model.Duration(r.length), history.MaxSteps, cmp.Or(r.options.Step, history.DefaultStep))
	case field == "podLabel":
		return misuse("-pod-label %v: %s", value, f.Rule)
	case slices.Contains([]string{"engine", "model", "step", "match", "namespace", "workload"}, field):
		return misuse("-%s %v: %s", field, value, f.Rule)
	}
	return misuse("-prometheus: %w", err)
}

func namesNoModel(e history.Engine) error {
	return misuse("-engine %s: its series do not name a model; leave -model out, and say which with -namespace or -match", e)
}

// detect finds the engine that has values of the model.
func (r *remote) detect(ctx context.Context, ask prometheus.API) (history.Engine, error) {
	var found []history.Engine
	for _, e := range history.Engines() {
		o := r.options
		if o.Validate(e) != nil {
			o.Model = "" // its series do not name it
		}
		selector, err := r.anyOf(e, o)
		if err != nil {
			return "", err
		}
		// Anything of it within the range, seen from its end.
		ctx, cancel := context.WithTimeout(ctx, answerIn)
		value, _, _, err := ask.Query(ctx, countOf(selector, r.length), r.end)
		cancel()
		if err != nil {
			return "", fmt.Errorf("-prometheus: %w", err)
		}
		if v, ok := value.(model.Vector); ok && len(v) > 0 {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 0:
		if r.options.Model == "" {
			return "", misuse("-prometheus: has no value of any engine in this range. -engine, -namespace and -match say where it is")
		}
		return "", misuse("-model %s: no engine has any value of it in this range. Is the name right, as in the label of vllm:num_requests_waiting? -engine, -namespace and -match say where it is", r.options.Model)
	case 1:
		if r.options.Validate(found[0]) != nil {
			return "", namesNoModel(found[0])
		}
		return found[0], nil
	}
	return "", misuse("-engine: must be given, as there are values of %v", found)
}

// anyOf selects the first of the metrics that are asked for.
func (r *remote) anyOf(e history.Engine, o history.Options) (selector string, err error) {
	queries, err := history.Queries(e, o)
	if err != nil {
		return "", r.flagged(err)
	}
	return selectorOf(&queries[0]), nil
}

// selectorOf returns what a query of one selector selects.
func selectorOf(q *history.Query) string {
	selector := strings.TrimPrefix(q.Expr, "last_over_time(")
	return selector[:strings.LastIndexByte(selector, '[')]
}

// countOf is how many series had a value within a time.
func countOf(selector string, within time.Duration) string {
	return fmt.Sprintf("count(last_over_time(%s[%ds]))", selector, int(within/time.Second))
}

// begins returns when the history begins: at the start of the range, or, where Prometheus or the model is younger than that,
// with the first value, which is told. What nobody recorded is no gap in what was.
func (r *remote) begins(ctx context.Context, ask prometheus.API, e history.Engine) (time.Time, error) {
	start := r.end.Add(-r.length)
	selector, err := r.anyOf(e, r.options)
	if err != nil {
		return start, err
	}
	fine := cmp.Or(r.options.Step, history.DefaultStep)
	from, to := start, r.end
	for _, step := range []time.Duration{max(fine, (r.length / 1000).Truncate(fine)), fine} {
		within, cancel := context.WithTimeout(ctx, answerIn)
		value, _, _, err := ask.QueryRange(within, countOf(selector, step), prometheus.Range{Start: from, End: to, Step: step}, prometheus.WithTimeout(answerIn))
		cancel()
		if err != nil {
			return start, fmt.Errorf("-prometheus: %w", err)
		}
		matrix, ok := value.(model.Matrix)
		if !ok || len(matrix) == 0 || matrix[0] == nil || len(matrix[0].Values) == 0 {
			return start, nil
		}
		at := matrix[0].Values[0].Timestamp.Time()
		if at.Before(from.Add(-step)) || at.After(to.Add(step)) {
			return start, fmt.Errorf("-prometheus: answered with a value at %s, of which it was not asked", at.UTC().Format(time.RFC3339))
		}
		from, to = at.Add(-step), at
	}
	if late := to.Sub(start); late > 10*fine {
		// A filler rounds down: not to long before the first value.
		longest := r.options.Longest()
		first := to
		if before := time.Duration(to.Unix()%int64(longest/time.Second)) * time.Second; before > 10*fine && to.Add(longest-before).Before(r.end) {
			first = to.Add(longest - before)
		}
		fmt.Fprintf(r.stderr, "simulate: Prometheus has no value of it before %s: of the %s asked for the last %s count\n",
			to.UTC().Format("2006-01-02 15:04"), r.length, r.end.Sub(first).Round(time.Minute))
		return first, nil
	}
	return start, nil
}

// A fetching is under way.
type fetching struct {
	*remote

	ask      prometheus.API
	carrier  *carrier
	filler   *history.Filler
	done     int
	total    int
	series   map[string]bool
	models   []string // of the engine's series
	warned   map[string]bool
	reported time.Time
}

// mostPerPod is how many values a pod has at a step, at most: engines have some thirty.
const mostPerPod = 100

// fits refuses at once what has more values than a history may have, which was found out after minutes of answers. How many pods there
// are over time is asked for, and how many series of each query at the time with the most. Those of kube-state-metrics, a tenth, are left out.
func (p *fetching) fits(ctx context.Context, queries []history.Query) error {
	start, end := p.filler.Span()
	step := queries[0].Step(&p.options)
	apart := max(step, (end.Sub(start) / 1000).Truncate(step))
	within, cancel := context.WithTimeout(ctx, answerIn)
	value, _, _, err := p.ask.QueryRange(within, "count("+selectorOf(&queries[0])+")", prometheus.Range{Start: start, End: end, Step: apart}, prometheus.WithTimeout(answerIn))
	cancel()
	if err != nil {
		return fmt.Errorf("-prometheus: %w", err)
	}
	matrix, ok := value.(model.Matrix)
	if !ok || len(matrix) == 0 || matrix[0] == nil {
		return nil
	}
	var steps float64 // of all pods
	var most model.SamplePair
	for _, pods := range matrix[0].Values {
		steps += float64(pods.Value) * float64(apart/step)
		if pods.Value > most.Value {
			most = pods
		}
	}
	if steps*mostPerPod < history.MaxValues {
		return nil
	}
	values := 0.0
	for i := range queries {
		q := &queries[i]
		if strings.Contains(q.Expr, " or ") || strings.HasPrefix(q.Expr, "last_over_time(kube_") {
			continue
		}
		within, cancel := context.WithTimeout(ctx, answerIn)
		value, _, _, err := p.ask.Query(within, "count("+selectorOf(q)+")", most.Timestamp.Time(), prometheus.WithTimeout(answerIn))
		cancel()
		if err != nil {
			return fmt.Errorf("-prometheus: %w", err)
		}
		if v, ok := value.(model.Vector); ok && len(v) > 0 && v[0] != nil {
			values += float64(v[0].Value) / float64(most.Value) * steps / float64(q.Every)
		}
	}
	if !(values > history.MaxValues) {
		return nil
	}
	longest := max(time.Hour, time.Duration(0.9*float64(end.Sub(start))*history.MaxValues/values).Truncate(time.Hour))
	return misuse("-range %s: would have about %.0f million values, of up to %v pods: must have at most %d million; choose a -range of %s, or a -step longer than %s",
		model.Duration(p.length), values/1e6, most.Value, history.MaxValues/1_000_000, model.Duration(longest), step)
}

// kubernetes asks kube-state-metrics about the workload whose name the pods have, if it can be told.
func (p *fetching) kubernetes(ctx context.Context, engine history.Engine) error {
	name, ok := history.WorkloadOf(p.filler.Pods())
	if ok = ok && engine != history.Dynamo; !ok { // whose frontends are not what is scaled
		fmt.Fprint(p.stderr, "simulate: -workload: cannot be told from the names of the pods, so replicas and starts are not asked for\n")
		return nil
	}
	o := p.options
	o.Workload = name
	if spaces := p.filler.Namespaces(); o.Namespace == "" && len(spaces) == 1 {
		o.Namespace = spaces[0]
	}
	queries, err := history.Queries(engine, o)
	if err != nil {
		return p.flagged(err)
	}
	before, err := history.Queries(engine, p.options)
	if err != nil {
		return p.flagged(err)
	}
	p.filler.Workload(name)
	return p.all(ctx, queries[len(before):])
}

// all asks queries, one after the other, each in pieces.
func (p *fetching) all(ctx context.Context, queries []history.Query) error {
	p.total = p.done + len(queries)
	for i := range queries {
		if err := p.one(ctx, &queries[i]); err != nil {
			return fmt.Errorf("-prometheus: %s: %w", queries[i].Expr, err)
		}
		if err := p.ofOneModel(); err != nil {
			return err
		}
		p.done++
		p.report()
	}
	return nil
}

func (p *fetching) one(ctx context.Context, q *history.Query) error {
	start, end := p.filler.Span()
	step := q.Step(&p.options)
	for from := start; !from.After(end); from = from.Add(mostPoints * step) {
		to := from.Add((mostPoints - 1) * step)
		if to.After(end) {
			to = end
		}
		within, cancel := context.WithTimeout(ctx, answerIn)
		value, warnings, _, err := p.ask.QueryRange(within, q.Expr, prometheus.Range{Start: from, End: to, Step: step}, prometheus.WithTimeout(answerIn))
		cancel()
		if err != nil {
			return err
		}
		for _, w := range warnings {
			if !p.warned[w] { // it may be the same of each query
				p.warned[w] = true
				fmt.Fprintf(p.stderr, "simulate: warning: Prometheus says: %s\n", p.carrier.without(w))
			}
		}
		if value == nil {
			return errors.New("answered without data")
		}
		matrix, ok := value.(model.Matrix)
		if !ok {
			return fmt.Errorf("answered with a %s, not with series over time", value.Type())
		}
		if slices.Contains(matrix, nil) {
			return errors.New("answered with null in place of a series")
		}
		if err := p.add(q, matrix); err != nil {
			return err
		}
		p.report()
	}
	return nil
}

func (p *fetching) add(q *history.Query, matrix model.Matrix) error {
	slices.SortFunc(matrix, func(a, b *model.SampleStream) int { return strings.Compare(a.Metric.String(), b.Metric.String()) })
	for _, stream := range matrix {
		labels := make(map[string]string, len(stream.Metric))
		for name, value := range stream.Metric {
			labels[string(name)] = string(value)
		}
		key := string(q.Part) + stream.Metric.String()
		if p.series[key] = true; len(p.series) > p.maxSeries {
			return fmt.Errorf("more than %d series: raise -max-series, or keep fewer with -namespace or -match", p.maxSeries)
		}
		if name := labels[modelLabel]; name != "" && !q.Router && !slices.Contains(p.models, name) {
			p.models = append(p.models, name)
		}
		err := p.filler.Add(q, labels, len(stream.Values), func(i int) (int64, float64) {
			return int64(stream.Values[i].Timestamp), float64(stream.Values[i].Value)
		})
		if err != nil {
			return p.limited(err)
		}
	}
	return nil
}

// modelLabel is that of engines whose pods serve one model each.
const modelLabel = "model_name"

// ofOneModel refuses pods of several models, unless -model or -match says which: they are no fleet.
func (p *fetching) ofOneModel() error {
	says := func(m string) bool {
		return strings.HasPrefix(m, modelLabel+"=") || strings.HasPrefix(m, modelLabel+"!")
	}
	if len(p.models) < 2 || p.options.Model != "" || slices.ContainsFunc(p.options.Match, says) {
		return nil
	}
	return misuse("-model: must be given, as there are values of %s; -match '%s=~\".+\"' takes them for one", strings.Join(p.models, ", "), modelLabel)
}

// limited names the flags by which there would be less.
func (p *fetching) limited(err error) error {
	f, ok := errors.AsType[*scaling.FieldError](err)
	switch {
	case ok && f.Field == "values":
		return misuse("-range %s: has more than %d values over all series: choose a shorter -range, or a -step longer than %s", model.Duration(p.length), history.MaxValues, cmp.Or(p.options.Step, history.DefaultStep))
	case ok && f.Field == "series":
		return misuse("more than %d series: keep fewer with -namespace or -match", history.MaxSeries)
	}
	return err
}

// report says how far it is, every few seconds of a long fetch.
func (p *fetching) report() {
	now := time.Now()
	if now.Sub(p.reported) < 5*time.Second {
		return
	}
	p.reported = now
	fmt.Fprintf(p.stderr, "simulate: Prometheus: %d of %d queries, %d series, %d MB\n", p.done, p.total, len(p.series), p.carrier.read()>>20)
}
