package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// stand takes part in elections until ctx ends, and does the duties of the leader while it holds the lease. Who loses it, as
// when the API server is away, goes on serving and tries for it again: the lease is about who writes, not about who answers.
func (p *process) stand(ctx context.Context) error {
	if !p.elect {
		p.lead(ctx)
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	config := leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: p.namespace, Name: p.ElectionName},
			Client:     p.kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		},
		LeaseDuration: p.Lease, RenewDeadline: p.Renew, RetryPeriod: p.Retry, ReleaseOnCancel: true, Name: p.ElectionName,
	}
	for ctx.Err() == nil {
		config.Callbacks = leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				p.logger.Info("leads")
				p.lead(ctx)
			},
			OnStoppedLeading: func() { p.logger.Info("leads no more") },
		}
		elector, err := leaderelection.NewLeaderElector(config)
		if err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
		elector.Run(ctx)
	}
	p.busy.Lock()
	defer p.busy.Unlock()
	return nil
}

// lead does all duties until ctx ends.
func (p *process) lead(ctx context.Context) {
	p.busy.Lock()
	defer p.busy.Unlock()
	if !p.manager.GetCache().WaitForCacheSync(ctx) {
		return // it ended before
	}
	var all sync.WaitGroup
	all.Go(func() { p.sweepOn(ctx) })
	if p.keeper != nil {
		all.Go(func() { p.keep(ctx) })
	}
	all.Wait()
}
