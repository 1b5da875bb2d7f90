package webhook

import (
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/estimate"
)

// Where the webhooks are served.
const (
	DefaultPath       = "/default-workspace"
	ValidatePath      = "/validate-workspace"
	ValidateScalePath = "/validate-workspace-scale"
)

// Register serves the webhooks on the webhook server of a manager. The manager's scheme must know v1alpha1 and
// autoscaling/v1.
func Register(m manager.Manager, estimator estimate.NodeEstimator) {
	decoder := admission.NewDecoder(m.GetScheme())
	server := m.GetWebhookServer()
	server.Register(DefaultPath, &ctrlwebhook.Admission{Handler: NewDefaulter(decoder, estimator)})
	server.Register(ValidatePath, &ctrlwebhook.Admission{Handler: NewValidator(decoder)})
	server.Register(ValidateScalePath, &ctrlwebhook.Admission{Handler: NewScaleValidator(decoder, m.GetAPIReader())})
}

// refuse is the answer to an invalid object: the errors name field, value and rule.
func refuse(name string, errs field.ErrorList) admission.Response {
	status := apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.Kind}, name, errs).ErrStatus
	return denied(status)
}

// failed is the answer when no judgement was possible. The object may be fine: the caller may try again.
func failed(err error) admission.Response {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return denied(status.Status())
	}
	return admission.Errored(http.StatusInternalServerError, err)
}

// denied is a refusal with a status of its own.
func denied(status metav1.Status) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}
}

// decode reads the object of a request, and the old one if there is one. An object that cannot be read is an error unless it is
// being deleted: then its finalizers can still be taken away.
func decode(decoder admission.Decoder, request *admission.Request) (fresh, old *v1alpha1.Workspace, err error) {
	fresh = &v1alpha1.Workspace{}
	if err := decoder.DecodeRaw(request.Object, fresh); err != nil {
		return nil, nil, err
	}
	if fresh.Unreadable != "" && fresh.DeletionTimestamp.IsZero() {
		return nil, nil, errors.New(fresh.Unreadable)
	}
	if request.Operation != admissionv1.Update {
		return fresh, nil, nil
	}
	old = &v1alpha1.Workspace{}
	if err := decoder.DecodeRaw(request.OldObject, old); err != nil {
		return nil, nil, err
	}
	return fresh, old, nil
}
