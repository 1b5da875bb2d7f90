package defaulting

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// MaxBody is the most bytes of a request that ServeHTTP reads. An API server takes objects of 3 MiB and stores objects
// of 1.5 MiB, and an update brings both the new object and the old one.
const MaxBody = 6 << 20

// MaxPending is the most bytes of requests that ServeHTTP reads and answers at once: the process has others to serve, and
// anybody who reaches the port may send.
const MaxPending = 2 * MaxBody

// bodyTime is how long a body may take. An API server sends it at once.
const bodyTime = 5 * time.Second

// MaxWarnings is the most warnings in a response. An API server cuts warnings short after 4096 characters.
const MaxWarnings = 20

// Review answers an admission request. It always allows. The response has a patch if there is something to add.
func (d *Defaulter) Review(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	res := &admissionv1.AdmissionResponse{Allowed: true}
	if req == nil {
		return res
	}
	res.UID = req.UID
	if req.SubResource != "" || (req.Operation != admissionv1.Create && req.Operation != admissionv1.Update) {
		return res
	}
	operations, warnings, err := d.Default(req.Object.Raw)
	if err != nil {
		res.Warnings = []string{"no defaults were added: " + err.Error()}
		return res
	}
	res.Warnings = few(warnings)
	if len(operations) == 0 {
		return res
	}
	raw, err := json.Marshal(operations)
	if err != nil { // a value that is no JSON, which none is
		res.Warnings = append(res.Warnings, "no defaults were added: "+err.Error())
		return res
	}
	jsonPatch := admissionv1.PatchTypeJSONPatch
	res.Patch, res.PatchType = raw, &jsonPatch
	return res
}

// few returns at most MaxWarnings warnings, of which the last then counts the others.
func few(warnings []string) []string {
	if len(warnings) <= MaxWarnings {
		return warnings
	}
	more := len(warnings) - (MaxWarnings - 1)
	return append(warnings[:MaxWarnings-1:MaxWarnings-1], fmt.Sprintf("and %d more warnings", more))
}

// ServeHTTP answers an AdmissionReview of admission.k8s.io/v1 with one, always allowing. What is no such review is
// answered with a status from 400 to 499, which an API server takes as its failurePolicy says; so is what comes while as
// much as MaxPending is being answered.
func (d *Defaulter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "the method must be POST", http.StatusMethodNotAllowed)
		return
	}
	if media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || media != "application/json" {
		http.Error(w, "the Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	size := req.ContentLength
	if size < 0 || size > MaxBody {
		size = MaxBody // it does not say, or will not be read on
	}
	defer d.pending.Add(-size)
	if d.pending.Add(size) > MaxPending {
		http.Error(w, fmt.Sprintf("more than %d bytes of requests are being answered", MaxPending), http.StatusTooManyRequests)
		return
	}
	// Who sends slowly must not keep others out. Where there is no connection, as in tests, there is nothing to bound.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) //nolint:forbidigo // the connection's clock
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(w, fmt.Sprintf("the body must be at most %d bytes", MaxBody), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		http.Error(w, "the body is not an AdmissionReview", http.StatusBadRequest)
		return
	}
	if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Request == nil {
		http.Error(w, "the body must be an AdmissionReview of admission.k8s.io/v1 with a request", http.StatusBadRequest)
		return
	}
	answer, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: d.Review(review.Request)})
	if err != nil { // a field that is no JSON, which none is
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // an API server that is gone gets no answer
}
