package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/adapters/keda"
	"github.com/inferscale/inferscale/scrape"
)

// alone serves static targets until ctx ends.
func (o *options) alone(ctx context.Context, logger *slog.Logger) error {
	urls := o.urls()
	if o.fake > 0 {
		pages, err := startPages(o.fake)
		if err != nil {
			return err
		}
		defer pages.stop()
		urls = pages.urls
	}
	fleet := still{urls: urls, replicas: int32(len(urls))}
	if o.count > 0 {
		fleet.replicas = int32(o.count)
	}
	budget, err := scrape.NewBudget(o.ScrapeMemory << 20)
	if err != nil {
		return err
	}
	triggers, err := keda.NewTriggers(keda.TriggersConfig{ScalerName: o.scaler, Scales: fleet, Observe: fleet.observe, Budget: budget, Logger: logger})
	if err != nil {
		return err
	}
	engine, err := keda.NewEngine(context.WithoutCancel(ctx), keda.EngineConfig{Build: triggers.Build, Idle: o.idle, MaxTriggers: o.maxTriggers, Logger: logger})
	if err != nil {
		return err
	}
	defer engine.Close()
	config, err := o.filesTLS()
	if err != nil {
		return err
	}
	server, healthy, err := keda.NewGRPC(keda.GRPCConfig{Engine: engine, TLS: config, Logger: logger})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return err
	}
	logger.Info("serving", "address", listener.Addr().String(), "tls", config != nil, "pages", len(urls), "replicas", fleet.replicas)
	for _, u := range urls {
		logger.Debug("page", "url", u)
	}
	return serve(ctx, o.Shutdown, server, healthy, listener, engine)
}

// A still fleet has the replicas that it was said to have, and pages that stand for their pods.
type still struct {
	urls     []string
	replicas int32
}

// Get returns the count of whatever is asked for.
func (f still) Get(_ context.Context, t k8s.Target) (k8s.Scale, error) {
	return k8s.Scale{Target: t, Replicas: f.replicas, StatusReplicas: f.replicas, Selector: labels.Everything()}, nil
}

func (f still) observe(plan *build.Plan) (keda.Observer, error) {
	c := plan.Scrape
	c.AllowLocal = true
	scraper, err := scrape.New(c)
	if err != nil {
		return nil, err
	}
	return &pageObserver{fleet: f, scraper: scraper}, nil
}

// A pageObserver asks static pages.
type pageObserver struct {
	fleet   still
	scraper *scrape.Scraper
}

// Observe asks every page. Replicas beyond the pages are as pods that are not ready.
func (p *pageObserver) Observe(ctx context.Context, scales []k8s.Scale) (k8s.Observed, error) {
	pods := make([]scrape.Pod, 0, len(p.fleet.urls))
	for i, u := range p.fleet.urls {
		pods = append(pods, scrape.Pod{Name: "page-" + strconv.Itoa(i), URL: u})
	}
	view := k8s.FleetView{Ready: int32(len(pods)), Absent: max(0, scales[0].Replicas-int32(len(pods)))}
	for i := range view.Absent {
		pods = append(pods, scrape.Pod{Name: fmt.Sprintf("absent-%d", i), State: scrape.NotReady})
	}
	sweep := p.scraper.Scrape(ctx, pods)
	view.Pods = sweep.Pods
	return k8s.Observed{Readings: sweep.Readings, Histograms: sweep.Histograms, Fleets: []k8s.FleetView{view}, Err: sweep.Err()}, ctx.Err()
}

// Close closes connections.
func (p *pageObserver) Close() { p.scraper.Close() }
