package typed_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/typed"
)

// TestError: who has written a file knows JSON, and not the types of a program.
func TestError(t *testing.T) {
	type inner struct {
		Text   string  `json:"text"`
		Whole  int32   `json:"whole"`
		Count  uint8   `json:"count"`
		Number float64 `json:"number"`
		Is     bool    `json:"is"`
		List   []inner `json:"list"`
	}
	for text, want := range map[string]string{
		`{"a": {"text": 5}}`:             "a.text: number: must be text",
		`{"a": {"whole": 3000000000}}`:   "a.whole: number 3000000000: must be a whole number of at most 32 bits",
		`{"a": {"count": -1}}`:           "a.count: number -1: must be a whole number of at most 8 bits that is not negative",
		`{"a": {"number": "x"}}`:         "a.number: string: must be a number",
		`{"a": {"number": 1e999}}`:       "a.number: number 1e999: must be a number",
		`{"a": {"is": 1}}`:               "a.is: number: must be true or false",
		`{"a": {"list": {}}}`:            "a.list: object: must be a list",
		`{"a": {"list": [{"list": 1}]}}`: "a.list.list: number: must be a list",
		`{"a": []}`:                      "a: array: must be an object",
		`5`:                              "must be an object, and not: number",
		`{`:                              "unexpected end of JSON input",
	} {
		var to struct {
			A inner `json:"a"`
		}
		require.EqualError(t, typed.Error(json.Unmarshal([]byte(text), &to)), want, text)
	}
	require.NoError(t, typed.Error(nil))
}
