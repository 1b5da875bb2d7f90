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

// MaxWarnings is the maximum number of warnings in a response. An API server truncates warnings after 4096 characters.
const MaxWarnings = 20

// Review answers an admission request. The response has a patch if there are defaults to add. It denies an object that
// Config.Check refuses, with every wrong field in the message. An update that does not change the spec is always allowed,
// with a warning: such an object was admitted without the webhook, and the update may only add a label or remove a finalizer.
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
		if err != nil { // not reached: all values can be marshalled
			res.Warnings = append(res.Warnings, "no defaults were added: "+err.Error())
			return res
		}
		jsonPatch := admissionv1.PatchTypeJSONPatch
		res.Patch, res.PatchType = raw, &jsonPatch
	}
	if err := d.check(root, &r); err != nil {
		if sameSpec(root, req.OldObject.Raw) {
			res.Warnings = few(append(res.Warnings, strings.Split(ascii(err.Error()), "\n")...))
			res.Patch, res.PatchType = nil, nil // what cannot be made right is not changed
			return res
		}
		return &admissionv1.AdmissionResponse{UID: req.UID, Warnings: res.Warnings, Result: &metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: err.Error(),
		}}
	}
	return res
}

// check calls Config.Check for an object with triggers of this scaler, after adding the defaults to a copy.
func (d *Defaulter) check(root object, r *review) error {
	if _, ours := d.ours(root); d.config.Check == nil || len(ours) == 0 {
		return nil
	}
	root = runtime.DeepCopyJSON(root)
	r.apply(root)
	return d.config.Check(root)
}

// sameSpec reports whether the spec of an object is unchanged.
func sameSpec(root object, before []byte) bool {
	old, err := decode(before)
	return err == nil && reflect.DeepEqual(old["spec"], root["spec"])
}

// ascii replaces the characters of a text that are not allowed in a header.
func ascii(s string) string {
	return strings.Map(func(c rune) rune {
		if c > unicode.MaxASCII {
			return '?'
		}
		return c
	}, s)
}

// few returns at most MaxWarnings warnings. If there are more, the last one says how many.
func few(warnings []string) []string {
	if len(warnings) <= MaxWarnings {
		return warnings
	}
	more := len(warnings) - (MaxWarnings - 1)
	return append(warnings[:MaxWarnings-1:MaxWarnings-1], fmt.Sprintf("and %d more warnings", more))
}
