package k8s

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/inferscale/inferscale/loop"
)

// A ContendedError says that the loop leaves a target alone for a while because another writer reverts its writes: a
// HorizontalPodAutoscaler on the same target, a ScaledObject, or somebody who applies a manifest with a count.
type ContendedError struct {
	Target Target
	// Who is the writer of the other count, or why that is unknown.
	Who string

	loop.ContendedError
}

// Error says who reverts the writes, and until when the target is left alone.
func (e *ContendedError) Error() string {
	return fmt.Sprintf("%s took back the last %d writes of %s: left alone until %s; one of the two has to go",
		cmp.Or(e.Who, "somebody else"), e.Times, e.Target, e.Until.UTC().Format(time.RFC3339))
}

// A LastWriter returns who wrote the count of a target last, as text: the field manager and the time.
type LastWriter func(ctx context.Context, t Target) (string, error)

// NewLastWriter returns the LastWriter that reads metadata.managedFields of targets. It needs the permission get on the
// targets, in addition to what Scales needs.
func NewLastWriter(client metadata.Interface, mapper meta.RESTMapper) LastWriter {
	return func(ctx context.Context, t Target) (string, error) {
		mapping, err := t.mapping(mapper)
		if err != nil {
			return "", err
		}
		o, err := client.Resource(mapping.Resource).Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return lastWriter(o.ManagedFields)
	}
}

// lastWriter returns the field manager of the count. Whoever wrote the count last owns the field, or shares it.
func lastWriter(entries []metav1.ManagedFieldsEntry) (string, error) {
	var last *metav1.ManagedFieldsEntry
	for i := range entries {
		e := &entries[i]
		if e.FieldsV1 == nil {
			continue
		}
		if fields, err := e.FieldsV1.MarshalJSON(); err != nil || !counts(fields) {
			continue
		}
		if last == nil || e.Time != nil && (last.Time == nil || last.Time.Before(e.Time)) {
			last = e
		}
	}
	if last == nil {
		return "", errors.New("no manager of spec.replicas in metadata.managedFields")
	}
	text := last.Manager
	if last.Subresource != "" {
		text += " (" + last.Subresource + ")"
	}
	if last.Time != nil {
		text += " at " + last.Time.UTC().Format(time.RFC3339)
	}
	return text, nil
}

// counts reports whether managed fields contain spec.replicas.
func counts(fields []byte) bool {
	var top map[string]map[string]json.RawMessage
	if json.Unmarshal(fields, &top) != nil {
		return strings.Contains(string(fields), `"f:replicas"`)
	}
	_, ok := top["f:spec"]["f:replicas"]
	return ok
}

// contend records in the outcomes which targets are left alone because another writer reverts the writes, and who that is.
func (r *round) contend(ctx context.Context, step *loop.Step) {
	for i, c := range step.Contended {
		if c == nil {
			delete(r.rivals, i)
			continue
		}
		o := &r.outcomes[i]
		if _, known := r.rivals[i]; !known && r.LastWriter != nil {
			who, err := r.LastWriter(ctx, o.Target)
			if err != nil {
				who = "somebody (not known who: " + err.Error() + ")"
			}
			r.rivals[i] = who
		}
		o.WriteErr = &ContendedError{Target: o.Target, Who: r.rivals[i], ContendedError: *c}
	}
}
