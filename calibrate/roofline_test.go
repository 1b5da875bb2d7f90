package calibrate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/calibrate"
	"github.com/inferscale/inferscale/sim"
)

func sheet(tb testing.TB, card, model string) (calibrate.Card, calibrate.Model) {
	tb.Helper()
	cards, models, err := calibrate.Sheets()
	require.NoError(tb, err)
	var c calibrate.Card
	var m calibrate.Model
	for _, x := range cards {
		require.NotEmpty(tb, x.Source)
		if x.Name == card {
			c = x
		}
	}
	for _, x := range models {
		if x.Name == model {
			m = x
		}
	}
	return c, m
}

// TestWeightsArePublished: the parameters that follow of each shape are those that its makers publish.
func TestWeightsArePublished(t *testing.T) {
	_, models, err := calibrate.Sheets()
	require.NoError(t, err)
	for _, m := range models {
		require.NotEmpty(t, m.Source)
		all, active := m.Config.Weights()
		require.InEpsilon(t, 1e9*m.Billions, all, 0.01, m.Name)
		if m.ActiveBillions > 0 {
			require.InEpsilon(t, 1e9*m.ActiveBillions, active, 0.03, m.Name)
		} else {
			require.Equal(t, all, active)
		}
	}
}

// TestRoofline: Qwen3-32B on two H100 is what the simulator has of it, whose numbers are from physics and two fits; nothing of a
// roofline is known, and it can be written and read.
func TestRoofline(t *testing.T) {
	card, model := sheet(t, "h100", "qwen3-32b")
	d, err := calibrate.Roofline(model.Name, model.Config, card, 2)
	require.NoError(t, err)
	want := sim.Qwen32B()
	require.InEpsilon(t, want.Base, d.Base.Value, 0.02)
	require.InEpsilon(t, want.PrefillToken, d.PrefillToken.Value, 0.02)
	require.InEpsilon(t, want.KVToken, d.KVToken.Value, 0.02)
	require.InEpsilon(t, want.Sequence, d.Sequence.Value, 0.2)
	require.InEpsilon(t, float64(want.KVTokens), d.KVTokens.Value, 0.2)
	require.Len(t, d.Unknown(), 5)
	again, err := calibrate.Read(d.Text(), "x")
	require.NoError(t, err)
	require.Equal(t, d, again)
	_, err = d.Server()
	require.NoError(t, err)

	card, model = sheet(t, "a100-80gb", "mixtral-8x7b")
	d, err = calibrate.Roofline(model.Name, model.Config, card, 2)
	require.NoError(t, err)
	require.Less(t, d.Base.Lower, d.Base.Value/3, "one token reads two of eight experts")
	_, err = calibrate.Roofline(model.Name, model.Config, card, 1)
	require.ErrorContains(t, err, "cards: 1: must have room for weights of 93 GB: a100-80gb has 80 GB")
}

// TestReadConfig: fields that are missing or not covered are named, all at once.
func TestReadConfig(t *testing.T) {
	c, err := calibrate.ReadConfig([]byte(`{"text_config": {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 10, "torch_dtype": "bfloat16"}}`), "config.json")
	require.NoError(t, err)
	all, active := c.Weights()
	require.Equal(t, 2*(4*8*8+3*8*16)+2*10*8.0, all)
	require.Equal(t, all, active)
	require.Equal(t, 2*2*2*2*4.0, c.KVBytes())
	_, err = calibrate.ReadConfig([]byte(`{"hidden_size": 8, "kv_lora_rank": 512, "num_experts": 4}`), "config.json")
	for _, says := range []string{"config.json: ", "num_hidden_layers: 0: must be within", "kv_lora_rank: 512: is not covered", "num_experts_per_tok: 0"} {
		require.ErrorContains(t, err, says)
	}
	const shape = `"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 10`
	for _, text := range []string{`{"quantization_config": {"quant_method": "fp8"}, ` + shape + `}`, `{"quantization_config": {"quant_method": "fp8"}, "text_config": {` + shape + `}}`, `{"text_config": {"quantization_config": {"quant_method": "fp8", "bits": 8}, ` + shape + `}}`} {
		_, err = calibrate.ReadConfig([]byte(text), "config.json")
		require.ErrorContains(t, err, `config.json: quantization_config: "fp8": is not covered`)
	}
	_, err = calibrate.ReadConfig([]byte(`{"decoder_sparse_step": 1, "mlp_only_layers": [], "quantization_config": null, `+shape+`}`), "config.json")
	require.NoError(t, err)
	_, err = calibrate.ReadConfig([]byte("\ufeff{"+shape+`, "num_key_value_heads": null, "text_config": null, "architectures": [{}]} `), "config.json")
	require.NoError(t, err)
	for text, says := range map[string]string{
		``:                               "config.json: must be JSON: unexpected EOF",
		`{"a": 1,}`:                      "config.json: must be JSON: invalid character '}'",
		`{}{}`:                           "config.json: must have one document",
		`[]`:                             "config.json: document: a list: must be an object",
		`{"hidden_size": "8"}`:           `config.json: hidden_size: "8": must be a number`,
		`{"hidden_size": 1e999}`:         `config.json: hidden_size: 1e999: must be a number`,
		`{"tie_word_embeddings": 1}`:     "config.json: tie_word_embeddings: 1: must be true or false",
		`{"text_config": 5}`:             "config.json: text_config: 5: must be an object",
		`{"quantization_config": "fp8"}`: `quantization_config: "fp8": is not covered`,
		`{` + shape + `, "intermediate_size_mlp": 32, "interleave_moe_layer_step": 2}`: "config.json: intermediate_size_mlp: 32: is not covered: calibrate by a benchmark or by production\ninterleave_moe_layer_step: 2: is not covered",
		`{` + shape + `, "attn_layer_period": 8, "mamba_d_state": 16}`:                 "attn_layer_period: 8: is not covered",
		`{` + shape + `, "decoder_sparse_step": 2}`:                                    "decoder_sparse_step: 2: is not covered",
		`{` + shape + `, "hidden_size": 9}`:                                            "config.json: hidden_size: 9: must be there once",
		`{"text_config": {"x": {"b": 1, "b": 2}, ` + shape + `}}`:                      "config.json: text_config.x.b: 2: must be there once",
		strings.Repeat(`{"a":`, 5000):                                                  "must be at most 100 deep",
	} {
		_, err = calibrate.ReadConfig([]byte(text), "config.json")
		require.ErrorContains(t, err, says)
	}
}

// FuzzReadConfig: nothing breaks the reader, and what it reads has a roofline or a reason.
func FuzzReadConfig(f *testing.F) {
	f.Add([]byte(`{"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 10}`))
	card, _ := sheet(f, "h100", "")
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := calibrate.ReadConfig(data, "x")
		if err != nil {
			return
		}
		if d, err := calibrate.Roofline("x", c, card, 8); err == nil {
			require.NoError(t, d.Validate())
		}
	})
}
