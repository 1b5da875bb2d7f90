package k8s

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/scale"

	"github.com/inferscale/inferscale/internal/printable"
)

// A Scale is /scale of a target at one resource version.
type Scale struct {
	Target Target
	// Replicas is spec.replicas, the requested count. Decisions start from it.
	Replicas int32
	// StatusReplicas is status.replicas, the existing count. It lags behind and is only for display.
	StatusReplicas int32
	// Selector selects the target's pods. It is nil if /scale has no selector or an empty one, which would match every pod.
	Selector labels.Selector
	// ResourceVersion is the condition of a write: the target must still have this version.
	ResourceVersion string
	// Generation is the target's generation if /scale has it, else 0.
	Generation int64
	UID        types.UID
}

// A ScaleClient reads and writes replica counts. [Scales] does so through /scale; other implementations could publish a
// metric, or patch a part of an object.
type ScaleClient interface {
	// Get reads a target. An error that wraps ErrNotFound means that the target does not exist.
	Get(ctx context.Context, t Target) (Scale, error)
	// Set writes the count of a target, on condition that the target has not changed since it was read. An error that wraps
	// ErrConflict means that it has changed. An error that wraps ErrRefused, ErrForbidden, ErrNotFound or ErrNoScale means
	// that nothing was written and never will be. After any other error the count may have been written; the next Get shows
	// whether it was.
	Set(ctx context.Context, t Target, read Scale, replicas int32) (Scale, error)
}

// Scales reads and writes /scale of any resource that has this subresource. It is safe for concurrent use if its parts are,
// as those of client-go are.
type Scales struct {
	getter scale.ScalesGetter
	mapper meta.RESTMapper
}

// NewScales returns the Scales of a scale client and a RESTMapper. Both are client-go's, see [Remembering]:
//
//	discovery := memory.NewMemCacheClient(clientset.Discovery())
//	mapper := k8s.Remembering(restmapper.NewDeferredDiscoveryRESTMapper(discovery))
//	getter, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc,
//		scale.NewDiscoveryScaleKindResolver(discovery))
func NewScales(getter scale.ScalesGetter, mapper meta.RESTMapper) *Scales {
	return &Scales{getter: getter, mapper: mapper}
}

// Get reads /scale of a target. Errors are *TargetError.
func (s *Scales) Get(ctx context.Context, t Target) (Scale, error) {
	const doing = "read"
	mapping, err := t.mapping(s.mapper)
	if err != nil {
		return Scale{}, &TargetError{Target: t, Doing: doing, What: ErrNoScale, Err: err}
	}
	object, err := s.getter.Scales(t.Namespace).Get(ctx, mapping.Resource.GroupResource(), t.Name, metav1.GetOptions{})
	if err != nil {
		return Scale{}, &TargetError{Target: t, Doing: doing, What: reading(err), Err: err}
	}
	return parse(t, object, doing)
}

// Set writes replicas to /scale of a target, on condition that the target has not changed since it was read. If its resource
// version differs, the error is an ErrConflict, and the caller should read and decide again. Set returns the target as
// written. Errors are *TargetError. After one that wraps ErrUncertain the count may have been written; after all others it
// was not.
//
// The write is an update of the subresource with the resource version, which the API server checks for built-in and custom
// resources alike.
func (s *Scales) Set(ctx context.Context, t Target, read Scale, replicas int32) (Scale, error) {
	doing := fmt.Sprintf("write replicas %d -> %d of", read.Replicas, replicas)
	refuse := func(err error) (Scale, error) {
		return Scale{}, &TargetError{Target: t, Doing: doing, What: ErrRefused, Err: err}
	}
	switch {
	case replicas < 0:
		return refuse(errors.New("replicas must not be negative"))
	case read.ResourceVersion == "":
		return refuse(errors.New("the scale was read without a resource version, so the write could not be conditional"))
	case read.Target != t:
		return refuse(fmt.Errorf("the scale that was read is that of %s", read.Target))
	}
	mapping, err := t.mapping(s.mapper)
	if err != nil {
		return Scale{}, &TargetError{Target: t, Doing: doing, What: ErrNoScale, Err: err}
	}
	object, err := s.getter.Scales(t.Namespace).Update(ctx, mapping.Resource.GroupResource(), &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name, ResourceVersion: read.ResourceVersion, UID: read.UID},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}, metav1.UpdateOptions{})
	if err != nil {
		return Scale{}, &TargetError{Target: t, Doing: doing, What: writing(err), Err: err}
	}
	// It is written. If the answer cannot be read, the next Get reads the rest.
	written, err := parse(t, object, doing)
	if err != nil {
		written = read
		written.Replicas, written.ResourceVersion = object.Spec.Replicas, object.ResourceVersion
	}
	return written, nil
}

// maxSelector is the maximum size of a selector, in bytes, and maxTerms the maximum number of its requirements and their values
// together: each round parses it and matches it against each pod of the namespace. mostShown is how many bytes of a selector,
// and of what is wrong with it, an error has.
const (
	maxSelector = 16 << 10
	maxTerms    = 256
	mostShown   = 256
)

func parse(t Target, object *autoscalingv1.Scale, doing string) (Scale, error) {
	s := Scale{
		Target: t, Replicas: object.Spec.Replicas, StatusReplicas: object.Status.Replicas,
		ResourceVersion: object.ResourceVersion, Generation: object.Generation, UID: object.UID,
	}
	wrong := func(format string, args ...any) (Scale, error) {
		return Scale{}, &TargetError{Target: t, Doing: doing, Err: fmt.Errorf(format, args...)}
	}
	for _, f := range []struct {
		name     string
		replicas int32
	}{{"spec.replicas", s.Replicas}, {"status.replicas", s.StatusReplicas}} {
		if f.replicas < 0 { // a custom resource may have any value that its definition does not forbid
			return wrong("%s: %d: must not be negative", f.name, f.replicas)
		}
	}
	if n := len(object.Status.Selector); n > maxSelector {
		return wrong("status.selector: %d bytes: must be at most %d", n, maxSelector)
	}
	if object.Status.Selector != "" {
		selector, err := labels.Parse(object.Status.Selector)
		if err != nil {
			return wrong("status.selector %q: %s", printable.Cut(object.Status.Selector, mostShown), printable.Cut(err.Error(), mostShown))
		}
		requirements, _ := selector.Requirements()
		terms := len(requirements)
		for i := range requirements {
			terms += len(requirements[i].ValuesUnsorted())
		}
		if terms > maxTerms {
			return wrong("status.selector: %d requirements and values: must be at most %d", terms, maxTerms)
		}
		s.Selector = selector
	}
	return s, nil
}

// reading returns the meaning of a failed Get.
func reading(err error) error {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return ErrForbidden
	case apierrors.IsMethodNotSupported(err), meta.IsNoMatchError(err), apierrors.IsNotFound(err) && noSubresource(err):
		return ErrNoScale
	case apierrors.IsNotFound(err):
		return ErrNotFound
	}
	return nil
}

// writing returns the meaning of a failed Update. Only an answer that refuses the request means that nothing was written;
// after a timeout, a broken connection or a server error the count may have been written.
func writing(err error) error {
	switch {
	case apierrors.IsConflict(err):
		return ErrConflict
	case reading(err) != nil:
		return reading(err)
	case noSubresource(err):
		return ErrNoScale
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if code := status.Status().Code; code >= http.StatusBadRequest && code < http.StatusInternalServerError {
			return ErrRefused
		}
	}
	return ErrUncertain
}

// noSubresource distinguishes a missing path from a missing object. If the API server does not have the path, it answers with
// a status that names no object, or with no status, and then the client fills one in. For a custom resource without the
// subresource it answers as if the object were missing. The error of the scale client's resolver has no type, only a text.
func noSubresource(err error) bool {
	if strings.Contains(err.Error(), "could not find scale subresource") {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusNotFound {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
