package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/examples/internal/turnstile"
	"github.com/inferscale/inferscale/policy"
)

// A roomy is a store that keeps the states of models that are gone, or had another algorithm, as long as there is room.
type roomy struct {
	k8s.Pruner

	watcher *Watcher
}

// Save replaces a state. Where it does not fit, it takes the place of those that no model in force has.
func (s roomy) Save(ctx context.Context, key string, old, state []byte) error {
	err := s.Pruner.Save(ctx, key, old, state)
	if _, full := errors.AsType[*k8s.SizeError](err); !full {
		return err
	}
	kept := map[string]bool{key: true}
	models := s.watcher.Current()
	for i := range models {
		kept[StateKey(&models[i])] = true
	}
	return s.SaveAndDrop(ctx, key, old, state, func(key string, _ []byte) bool {
		return !kept[strings.TrimSuffix(key, dryRunSuffix)] && isStateKey(key)
	})
}

// A Runner keeps a loop for each model of the configuration in force. Two of them must not run at a time.
type Runner struct {
	env     Env
	watcher *Watcher
	running map[string]*running // by model
	rounds  *turnstile.Turnstile
}

// How many rounds are made at a time, of all models and of those of one namespace, as by default in llmautoscaler. A round
// asks the API server one thing after the other, so that no more requests than these wait for their turn.
const (
	mostRounds = 64
	mostOfOne  = 16
)

// A running is a model whose loop runs.
type running struct {
	config policy.Model
	stop   context.CancelFunc
	ended  chan struct{}
}

// NewRunner returns the Runner of what a Watcher finds.
func NewRunner(env Env, watcher *Watcher) *Runner {
	if store, ok := env.Store.(k8s.Pruner); ok {
		env.Store = roomy{store, watcher}
	}
	return &Runner{env: env, watcher: watcher, running: make(map[string]*running)}
}

// Run runs the models until the context ends. When it returns, nothing of them is left.
//
// A change of the configuration ends the loops of models that changed or went, waits for their rounds to end, and starts
// those of models that are new or changed; the others run on.
func (r *Runner) Run(ctx context.Context) {
	r.watcher.Speak()
	r.rounds = turnstile.New(mostRounds, mostOfOne)
	defer r.rounds.Close()
	defer r.follow(context.WithoutCancel(ctx), nil)
	for {
		if models := r.watcher.Current(); models != nil {
			r.follow(ctx, models)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.watcher.Changed():
		}
	}
}

// follow lets the models of a configuration run, and no others.
func (r *Runner) follow(ctx context.Context, models []policy.Model) {
	wanted := make(map[string]*policy.Model, len(models))
	for i := range models {
		wanted[models[i].String()] = &models[i]
	}
	var ending sync.WaitGroup
	for name, is := range r.running {
		if m := wanted[name]; m != nil && reflect.DeepEqual(*m, is.config) {
			continue
		}
		delete(r.running, name)
		is.stop()
		ending.Go(func() {
			<-is.ended
		})
	}
	ending.Wait() // a target that moves from one model to another has one master at a time
	for i := range models {
		m := models[i]
		if r.running[m.String()] != nil {
			continue
		}
		started, err := r.start(ctx, m)
		if err != nil { // what can be wrong with a model was checked when it was read
			r.env.logger().Error("model does not run", "model", m.String(), "error", err.Error())
			continue
		}
		r.running[m.String()] = started
	}
}

func (r *Runner) start(ctx context.Context, c policy.Model) (*running, error) {
	m, err := newModel(&r.env, c)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", c.String(), err)
	}
	ctx, stop := context.WithCancel(ctx)
	is := &running{config: m.config, stop: stop, ended: make(chan struct{})}
	m.logger.Info("model runs", "algorithm", c.Algorithm, "variants", len(c.Variants), "interval", c.Interval.String(), "dryRun", r.env.DryRun || c.DryRun)
	go func() {
		defer close(is.ended)
		for m.run(ctx, r.rounds) {
			anew, err := newModel(&r.env, c)
			if err != nil { // there was one
				m.logger.Error("model does not run", "error", err.Error())
				break
			}
			m.close()
			m = anew
		}
		m.close()
	}()
	return is, nil
}
