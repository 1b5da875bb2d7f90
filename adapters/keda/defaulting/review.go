package defaulting

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"unicode"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// MaxWarnings is the most warnings in a response. An API server cuts warnings short after 4096 characters.
const MaxWarnings = 20

// Review answers an admission request. The response has a patch if there is something to add, and does not allow what
// Config.Check refuses, with every wrong field in its message. An update that leaves the spec as it was is allowed
// whatever it says, with a warning: it came in without the webhook, and is labelled, or loses a finalizer.
func (d *Defaulter) Review(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	res := &admissionv1.AdmissionResponse{Allowed: true}
	if req == nil {
		return res
	}
	res.UID = req.UID
	if req.SubResource != "" || (req.Operation != admissionv1.Create && req.Operation != admissionv1.Update) {
		return res
	}
	root, err := decode(req.Object.Raw)
	if err != nil {
		res.Warnings = []string{"no defaults were added: defaulting: the object: " + err.Error()}
		return res
	}
	r := d.review(root)
	res.Warnings = few(r.warnings)
	if len(r.patch) > 0 {
		raw, err := json.Marshal(r.patch)
		if err != nil { // a value that is no JSON, which none is
			res.Warnings = append(res.Warnings, "no defaults were added: "+err.Error())
			return res
		}
		jsonPatch := admissionv1.PatchTypeJSONPatch
		res.Patch, res.PatchType = raw, &jsonPatch
	}
	if err := d.check(root, &r); err != nil {
		if sameSpec(root, req.OldObject.Raw) {
			res.Warnings = few(append(res.Warnings, strings.Split(ascii(err.Error()), "\n")...))
			return res
		}
		return &admissionv1.AdmissionResponse{UID: req.UID, Warnings: res.Warnings, Result: &metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: err.Error(),
		}}
	}
	return res
}

// check asks Config.Check about an object of ours as it is with its defaults.
func (d *Defaulter) check(root object, r *review) error {
	if _, ours := d.ours(root); d.config.Check == nil || len(ours) == 0 {
		return nil
	}
	root = runtime.DeepCopyJSON(root)
	r.apply(root)
	return d.config.Check(root)
}

// sameSpec reports whether an object has the spec that it had before.
func sameSpec(root object, before []byte) bool {
	old, err := decode(before)
	return err == nil && reflect.DeepEqual(old["spec"], root["spec"])
}

// ascii returns a text without what a header cannot have.
func ascii(s string) string {
	return strings.Map(func(c rune) rune {
		if c > unicode.MaxASCII {
			return '?'
		}
		return c
	}, s)
}

// few returns at most MaxWarnings warnings, of which the last then counts the others.
func few(warnings []string) []string {
	if len(warnings) <= MaxWarnings {
		return warnings
	}
	more := len(warnings) - (MaxWarnings - 1)
	return append(warnings[:MaxWarnings-1:MaxWarnings-1], fmt.Sprintf("and %d more warnings", more))
}
