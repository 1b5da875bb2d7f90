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
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// A leader does duties while it holds the lease. Who loses it, as when the API server is away, goes on serving and
// tries for it again: the lease is about who writes, not about who answers.
type leader struct {
	*process

	duties []manager.Runnable // that only one replica has
	busy   sync.Mutex         // held while duties are done: who comes back must not do them twice at once
}

// Start takes part in elections until ctx ends.
func (l *leader) Start(ctx context.Context) error {
	if !l.elect {
		return l.lead(ctx)
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	config := leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: l.namespace, Name: l.ElectionName},
			Client:     l.kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		},
		LeaseDuration: l.Lease, RenewDeadline: l.Renew, RetryPeriod: l.Retry, ReleaseOnCancel: true, Name: l.ElectionName,
	}
	for ctx.Err() == nil {
		config.Callbacks = leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				l.logger.Info("leads")
				if err := l.lead(ctx); err != nil {
					l.logger.Error("duties of the leader", "error", err)
				}
			},
			OnStoppedLeading: func() { l.logger.Info("leads no more") },
		}
		elector, err := leaderelection.NewLeaderElector(config)
		if err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
		elector.Run(ctx)
	}
	l.busy.Lock()
	defer l.busy.Unlock()
	return nil
}

// lead does all duties until ctx ends.
func (l *leader) lead(ctx context.Context) error {
	l.busy.Lock()
	defer l.busy.Unlock()
	if !l.manager.GetCache().WaitForCacheSync(ctx) {
		return nil // it ended before
	}
	var all sync.WaitGroup
	for _, d := range l.duties {
		all.Go(func() {
			if err := d.Start(ctx); err != nil {
				l.logger.Error("duty of the leader", "error", err)
			}
		})
	}
	all.Wait()
	return nil
}
