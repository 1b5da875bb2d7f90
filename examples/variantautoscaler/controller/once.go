package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/scaling"
)

// dryRunSuffix is what a k8s.Loop appends to the key of its state in a dry run.
const dryRunSuffix = ".dry-run"

// A readOnly is a store that is only read: what is saved is forgotten. With real, dry runs read the state that the real
// loop has, and so show what it would do next. Who may not read states begins without one.
type readOnly struct {
	k8s.Store

	real bool
}

// Load returns what is stored.
func (s readOnly) Load(ctx context.Context, key string) ([]byte, error) {
	if s.real {
		key = strings.TrimSuffix(key, dryRunSuffix)
	}
	state, err := s.Store.Load(ctx, key)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return state, err
}

// Save forgets the state.
func (readOnly) Save(context.Context, string, []byte, []byte) error { return nil }

// Once does one round of each model and prints what it comes to, as a table and, if asked, with the chain behind every
// count. Nothing is written: neither replicas nor states nor events. The error joins those of the rounds.
func Once(ctx context.Context, env Env, models []policy.Model, out io.Writer, explain bool, patience time.Duration) error {
	var errs []error
	env.DryRun, env.Recorder = true, nil
	under := env.Store
	for i := range models {
		c := &models[i]
		env.Store = readOnly{Store: under, real: !c.DryRun}
		if i > 0 {
			fmt.Fprint(out, "\n")
		}
		if err := once(ctx, &env, c, out, explain, patience); err != nil {
			errs = append(errs, fmt.Errorf("model %s: %w", c.String(), err))
		}
	}
	return errors.Join(errs...)
}

func once(ctx context.Context, env *Env, c *policy.Model, out io.Writer, explain bool, patience time.Duration) error {
	m, err := newModel(env, *c)
	if err != nil {
		return err
	}
	defer m.close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := m.pods.await(ctx, m.logger); err != nil {
		return fmt.Errorf("pods of namespace %s are not known after %s: %w", c.Namespace, patience, err)
	}
	outcomes, err := m.loop.Tick(ctx)
	m.print(out, outcomes)
	if explain {
		m.explain(out, outcomes)
	}
	return err
}

// print writes the plan of a model:
//
//	serving/meta/llama-70b  saturation  Up 3 -> 4  cost 218 -> 278
//	VARIANT     COST  BOUNDS  READY  COUNT   VERDICT  REASON
//	llama-a100  60    1..8    2      2 -> 3  Up       ...
func (m *model) print(out io.Writer, outcomes []k8s.Outcome) {
	var now, then float64
	for i := range outcomes {
		o, cost := &outcomes[i], m.config.Variants[i].Cost
		now += cost * float64(o.Scale.Replicas)
		then += cost * float64(planned(o))
	}
	total := &m.policy.total
	fmt.Fprintf(out, "%s  %s  %s %s  cost %g -> %g\n", m.config.String(), m.config.Algorithm, total.Verdict, arrow(total.From, total.Replicas), now, then)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "VARIANT\tCOST\tBOUNDS\tREADY\tCOUNT\tVERDICT\tREASON\n")
	for i := range outcomes {
		o, v := &outcomes[i], &m.config.Variants[i]
		ready, count := fmt.Sprint(o.View().Ready), arrow(o.Scale.Replicas, planned(o))
		verdict, reason := o.Decision.Verdict.String(), rule(&o.Decision)
		if err := o.Err(); err != nil {
			reason = strings.ReplaceAll(err.Error(), "\n", "; ")
			if !o.Decided {
				ready, count = "-", "-"
			}
		}
		fmt.Fprintf(table, "%s\t%g\t%d..%d\t%s\t%s\t%s\t%s\n", v.Target.Name, v.Cost, v.Min, v.Max, ready, count, verdict, reason)
	}
	_ = table.Flush() // printing to a terminal that is gone
}

// explain writes the chains of the total and of every variant.
func (m *model) explain(out io.Writer, outcomes []k8s.Outcome) {
	fmt.Fprintf(out, "\nall variants\n%s", indent(m.policy.total.Explain()))
	for i := range outcomes {
		fmt.Fprintf(out, "%s\n%s", m.config.Variants[i].Target.Name, indent(outcomes[i].Decision.Explain()))
	}
	for _, r := range outcomes[0].Observed.Readings {
		fmt.Fprintf(out, "reading  %s  %g to %g, from %d of %d replicas\n", r.Metric, r.Lower, r.Upper, r.Values, r.Values+r.NotReady+r.Failed)
	}
	if err := outcomes[0].Observed.Err; err != nil {
		fmt.Fprintf(out, "metrics  %v\n", err)
	}
}

// planned is the count that a target is to have.
func planned(o *k8s.Outcome) int32 {
	if o.Decided && o.Decision.Acts() {
		return o.Decision.Replicas
	}
	return o.Scale.Replicas
}

func arrow(from, to int32) string { return fmt.Sprintf("%d -> %d", from, to) }

// rule returns the reason of a decision without its verdict and counts, which have columns of their own.
func rule(d *scaling.Decision) string {
	if _, text, ok := strings.Cut(d.Reason(), ": "); ok {
		return text
	}
	return d.Reason()
}

func indent(text string) string {
	text = strings.TrimRight(text, "\n")
	return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}
