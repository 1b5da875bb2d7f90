package forecast_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/forecast"
	"github.com/inferscale/inferscale/scaling"
)

func TestReadTakesTimesAndDemand(t *testing.T) {
	all, err := forecast.Read(strings.NewReader("time,demand\r\n2026-03-01T00:05:00+01:00,212.5\r\n2026-02-28T23:10:00.5Z,0\n"), "h.csv")
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.True(t, all[0].At.Equal(time.Date(2026, 2, 28, 23, 5, 0, 0, time.UTC)))
	assert.InDelta(t, 212.5, all[0].Demand, 0)
	all, err = forecast.Read(strings.NewReader("time,demand"), "h.csv")
	require.NoError(t, err)
	assert.Empty(t, all)
}

func TestReadNamesLineFieldAndRule(t *testing.T) {
	for text, want := range map[string]string{
		"":                     `h.csv:1: header: "": must be time,demand`,
		"time;demand\n":        `h.csv:1: header: "time;demand": must be time,demand`,
		"time,demand\n\n":      `h.csv:2: line: "": must have two columns, time,demand`,
		"time,demand\n1,2,3\n": `h.csv:2: line: "1,2,3": must have two columns, time,demand`,
		"time,demand\n12:00,2": `h.csv:2: time: "12:00": must be a time as 2026-03-01T00:05:00+01:00`,
		"time,demand\nZ,2":     `h.csv:2: time: "Z": must be a time as 2026-03-01T00:05:00+01:00`,
		"time,demand\n2026-03-01T00:05:00.0001Z,2":                         `h.csv:2: time: "2026-03-01T00:05:00.0001Z": must be of whole milliseconds`,
		"time,demand\n2026-03-01T00:05:00Z,2\n2026-03-01T01:05:00+01:00,3": `h.csv:3: time: "2026-03-01T01:05:00+01:00": must be after that of the line before`,
		"time,demand\n2026-03-01T00:05:00Z,-2":                             `h.csv:2: demand: "-2": must be a number from 0 to 1e15`,
		"time,demand\n2026-03-01T00:05:00Z,NaN":                            `h.csv:2: demand: "NaN": must be a number from 0 to 1e15`,
		"time,demand\n2026-03-01T00:05:00Z,0x1p3":                          `h.csv:2: demand: "0x1p3": must be a number from 0 to 1e15`,
		"time,demand\n2026-03-01T00:05:00Z,1e16":                           `h.csv:2: demand: "1e16": must be a number from 0 to 1e15`,
		"time,demand\n2026-03-01T00:05:00Z, 1":                             `h.csv:2: demand: " 1": must be a number from 0 to 1e15`,
		"time,demand\n2026-03-01T00:05:00Z,":                               `h.csv:2: demand: "": must be a number from 0 to 1e15`,
	} {
		_, err := forecast.Read(strings.NewReader(text), "h.csv")
		require.EqualError(t, err, want)
		var line *forecast.LineError
		require.ErrorAs(t, err, &line)
		var field *scaling.FieldError
		require.ErrorAs(t, err, &field)
	}
	broken := errors.New("broken")
	_, err := forecast.Read(io.MultiReader(strings.NewReader("time,demand\n"), iotest.ErrReader(broken)), "h.csv")
	require.ErrorIs(t, err, broken)
}

// TestRegressionReadSaysWhatIsWrongWithALongLine: of a file in one line it said "token too long", without field, value and rule; a field of
// 60 KB was in the error in full; and the zero time was taken, which New refuses.
func TestRegressionReadSaysWhatIsWrongWithALongLine(t *testing.T) {
	long := strings.Repeat("x", 60_000)
	for text, want := range map[string]string{
		long + long: "h.csv:1: line: 1: must be shorter than 65536 bytes",
		"time,demand\n2026-03-01T00:05:00Z,1\n" + long + long: "h.csv:3: line: 3: must be shorter than 65536 bytes",
		"time,demand\n0001-01-01T00:00:00Z,1":                 `h.csv:2: time: "0001-01-01T00:00:00Z": must not be the zero time`,
	} {
		_, err := forecast.Read(strings.NewReader(text), "h.csv")
		require.EqualError(t, err, want)
	}
	for _, text := range []string{long, "time,demand\n" + long, "time,demand\n" + long + ",1", "time,demand\n2026-03-01T00:05:00Z," + long} {
		_, err := forecast.Read(strings.NewReader(text), "h.csv")
		require.Error(t, err)
		require.Less(t, len(err.Error()), 200)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("time,demand\n2026-03-01T00:05:00+01:00,212.5\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := forecast.Read(strings.NewReader(text), "h.csv")
		if err != nil {
			var line *forecast.LineError
			require.ErrorAs(t, err, &line)
			return
		}
		_, err = forecast.New(scaling.New(follower(10)), source(10), configOf(nil), all...)
		require.NoError(t, err, "what Read takes, New takes")
	})
}
