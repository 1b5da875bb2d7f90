package defaulting

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
)

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
