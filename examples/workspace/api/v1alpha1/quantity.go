package v1alpha1

import (
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	jsonutil "k8s.io/apimachinery/pkg/util/json"
)

// UnmarshalJSON reads a model, but no weights that would take long: of 1e-99999999 all digits are written out to be rounded. The
// definition refuses them too, but only after the webhook that fills in defaults has read them.
func (m *ModelSpec) UnmarshalJSON(data []byte) error {
	type plain ModelSpec
	read := struct {
		*plain

		Weights *weights `json:"weights"`
	}{plain: (*plain)(m)}
	if err := jsonutil.Unmarshal(data, &read); err != nil {
		return err
	}
	if m.Weights = nil; read.Weights != nil {
		m.Weights = &read.Weights.Quantity
	}
	return nil
}

// weights is a quantity as ModelSpec has it.
type weights struct{ resource.Quantity }

const mostWeights = 32 // characters

func (w *weights) UnmarshalJSON(data []byte) error {
	text := string(data)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	if len(text) > mostWeights || far(text) {
		return errors.New("spec.inference.model.weights: must be a quantity of 32 characters and an exponent of two digits at most")
	}
	var err error
	w.Quantity, err = resource.ParseQuantity(strings.TrimSpace(text))
	return err
}

// far reports whether a quantity has an exponent of more than two digits.
func far(text string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	exponent = strings.TrimLeft(exponent, "+-")
	return len(exponent)-len(strings.TrimLeft(exponent, "0123456789")) > 2
}
