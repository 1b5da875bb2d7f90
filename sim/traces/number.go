package traces

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	wholeRule = "must be a whole number"
	manyRule  = "must be at most 2147483647"
	tokenRule = wholeRule + " of at least 1"
	lateRule  = "must be before the end of 90 days, which begin at 0"
)

// tokens reads the tokens of a request, at least least, from a column of the present record.
func (t *table) tokens(column int, least uint64, rule string) (int32, error) {
	n, err := strconv.ParseUint(t.record[column], 10, 31)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, t.wrong(column, manyRule)
	case err != nil || n < least:
		return 0, t.wrong(column, rule)
	}
	return int32(n), nil
}

// span reads a time since the beginning from a column of the present record, in whole or decimal units.
func (t *table) span(column int, unit time.Duration) (time.Duration, error) {
	whole, nanos, ok := decimal(t.record[column])
	if !ok {
		return 0, t.wrong(column, "must be a number that is not negative, in digits")
	}
	if whole >= int64(longest/unit) {
		return 0, t.wrong(column, lateRule)
	}
	return time.Duration(whole)*unit + time.Duration(nanos)*unit/1e9, nil
}

// decimal returns the whole part of a number that is not negative, and up to nine of its decimals as billionths. Exponents,
// signs and missing parts are not accepted.
func decimal(s string) (whole, nanos int64, ok bool) {
	before, after, point := strings.Cut(s, ".")
	if before == "" || point && after == "" || strings.Trim(before+after, "0123456789") != "" {
		return 0, 0, false
	}
	whole, _ = strconv.ParseInt(before, 10, 64) // a number with too many digits gives the largest int64
	if len(after) > 9 {
		after = after[:9]
	}
	for i := range 9 {
		nanos *= 10
		if i < len(after) {
			nanos += int64(after[i] - '0')
		}
	}
	return whole, nanos, true
}

// millis writes a time in milliseconds with its decimals: the form that span reads.
func millis(to []byte, t time.Duration) []byte {
	to = strconv.AppendInt(to, int64(t/time.Millisecond), 10)
	rest := int64(t % time.Millisecond)
	if rest == 0 {
		return to
	}
	digits := strconv.FormatInt(rest+1e6, 10)[1:]
	to = append(to, '.')
	return append(to, strings.TrimRight(digits, "0")...)
}

// number reads a number in a column of the present record.
func (t *table) number(column int, least, most float64, rule string) (float64, error) {
	x, err := strconv.ParseFloat(t.record[column], 64)
	if err != nil || !(x >= least && x <= most) {
		return 0, t.wrong(column, rule)
	}
	return x + 0, nil // without the sign of a negative zero
}
