package v1alpha1

import (
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	jsonutil "k8s.io/apimachinery/pkg/util/json"

	"github.com/inferscale/inferscale/examples/internal/quantity"
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

func (w *weights) UnmarshalJSON(data []byte) error {
	text := string(data)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	if !quantity.IsShort(text) {
		return errors.New("spec.inference.model.weights: " + quantity.Rule)
	}
	var err error
	w.Quantity, err = resource.ParseQuantity(strings.TrimSpace(text))
	return err
}
