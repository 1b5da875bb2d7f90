package main

import (
	"context"
	"sync"
	"sync/atomic"
)

// inParallel calls work for 0 to n-1, a few at a time, and returns the error of the lowest of those that failed. Each
// call writes to a place of its own, so that results do not depend on which core was faster.
func inParallel(ctx context.Context, workers, n int, work func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, n)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(workers, n) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if errs[i] = work(ctx, i); errs[i] != nil {
					cancel()
				}
			}
		})
	}
	group.Wait()
	var stopped error
	for _, err := range errs {
		switch {
		case err == nil:
		case ctx.Err() != nil && isCanceled(err):
			stopped = err
		default:
			return err
		}
	}
	if stopped == nil {
		stopped = context.Cause(ctx)
	}
	return stopped
}
