package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
	"github.com/inferscale/inferscale/loop"
)

const (
	statePrefix  = "state-"
	dryRunSuffix = ".dry-run"
	maxBaselines = 1 << 20 // of one object, for the moment between two generations
	takes        = 3       // how often it is tried to take over a state while somebody else writes the object
)

// stateKey is the key of the state. Each layout has its own, as they cannot
// read each other's. The name of an annotation has 63 bytes at most.
func stateKey(layout string) string {
	key := statePrefix + strings.ReplaceAll(layout, "+", "-")
	if most := 63 - len(dryRunSuffix); len(key) > most {
		sum := sha256.Sum256([]byte(layout))
		key = key[:most-9] + "-" + hex.EncodeToString(sum[:4])
	}
	return key
}

// annotation is the annotation of a key.
func annotation(key string) string { return k8s.AnnotationPrefix + "/" + key }

// takeState takes over the state of the algorithms that the object had before, and removes it: it would be stale when
// they came back, and annotations have room for so much. The same goes for the state of a dry run that is over; that of
// the real loop stays during one.
func (r *runner) takeState(ctx context.Context, las *v1alpha1.LLMAutoScaler) error {
	logger := r.controller.config.Logger.With("namespace", las.Namespace, "name", las.Name)
	if r.former != nil {
		if err := r.former.Flush(ctx); err != nil {
			logger.Warn("state not stored before a change of the spec", "error", err)
		}
	}
	var err error
	for n := 0; !r.taken && n < takes; n++ {
		if err = r.take(ctx, las, logger); err != nil && !apierrors.IsConflict(err) {
			return err
		}
		r.taken = err == nil
	}
	return err
}

// take does so once.
func (r *runner) take(ctx context.Context, las *v1alpha1.LLMAutoScaler, logger *slog.Logger) error {
	resource := r.controller.config.Metadata.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(las.Namespace)
	found, err := resource.Get(ctx, las.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the state of other algorithms: %w", err)
	}
	others := r.others(found.Annotations)
	if len(others) == 0 {
		return nil
	}
	values := make(map[string]any, len(others)+1)
	for _, key := range others {
		values[key] = nil
	}
	if mine := annotation(stateKey(r.plan.Layout)); found.Annotations[mine] == "" {
		for _, key := range others {
			if strings.HasSuffix(key, dryRunSuffix) || found.Annotations[key] == "" {
				continue
			}
			state, err := loop.CarryOver(k8s.UpgradeState([]byte(found.Annotations[key])), r.plan.Policy)
			if err != nil {
				logger.Warn("state of other algorithms not taken over", "annotation", key, "error", err)
				continue
			}
			values[mine] = string(state)
			break
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": found.ResourceVersion, "annotations": values}})
	if err != nil {
		return err
	}
	if _, err := resource.Patch(ctx, las.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("take the state of other algorithms over: %w", err)
	}
	logger.Info("state of other algorithms taken over and removed", "annotations", others)
	return nil
}

// others returns the annotations with states that are none of this generation's, in order.
func (r *runner) others(annotations map[string]string) []string {
	mine := annotation(stateKey(r.plan.Layout))
	var others []string
	for key := range annotations {
		if strings.HasPrefix(key, annotation(statePrefix)) && key != mine && (key != mine+dryRunSuffix || !r.plan.DryRun) {
			others = append(others, key)
		}
	}
	slices.Sort(others)
	return others
}

// inherit takes over what outlives a change of the spec.
func (r *runner) inherit(old *runner) {
	r.former, old.former, r.baselines = old.former, nil, old.baselines
	if old.observer != nil {
		r.baselines, _ = old.observer.Snapshot(maxBaselines)
	}
	r.watchers.inherit(&old.watchers)
	if old.loop != nil {
		r.dropFormer()
		r.former, old.loop = old.loop, nil
	}
}

func (r *runner) dropFormer() {
	if r.former != nil {
		r.former.Close()
		r.former = nil
	}
}
