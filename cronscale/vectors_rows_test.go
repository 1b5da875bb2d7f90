package cronscale

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
)

func kedaParse(r vectorRow) (string, error) {
	metadata, ok := r["metadata"].(map[string]any)
	if !ok {
		return "", fmt.Errorf("%w: no metadata", errDiffers)
	}
	field := func(name string) string {
		for k, v := range metadata {
			if strings.EqualFold(k, name) {
				return strings.TrimSpace(fmt.Sprint(v))
			}
		}
		return ""
	}
	start, end, zone := field("start"), field("end"), field("timezone")
	count, bad := int64(0), error(nil)
	if text := field("desiredReplicas"); text != "" {
		if bad = json.Unmarshal([]byte(text), &count); bad == nil && int64(int32(count)) != count { // as KEDA reads it
			bad = strconv.ErrRange
		}
	}
	_, err := New(Config{
		Mode: InWindow, Bounds: scaling.Bounds{Max: 1000},
		Windows: []Window{{"w", start, end, int32(count), zone}},
	})
	if bad != nil {
		err = bad // refused where the text is read, before it comes here
	}
	accepted := r.bool("accepted")
	switch {
	case accepted == (err == nil):
		return "", nil
	case accepted:
		for _, rule := range []string{refusal(start), refusal(end), zoneRefusal(zone)} {
			if rule != "" && rule != ruleBadSpec {
				return rule, nil
			}
		}
		switch {
		case errors.Is(bad, strconv.ErrRange), count < 0:
			return ruleCount, nil
		case refusal(start) == "" && refusal(end) == "" && mustParse(quiet{}, start) == mustParse(quiet{}, end):
			return ruleSame, nil
		}
		return "", fmt.Errorf("%w: refused: %w", errDiffers, err)
	case strings.HasPrefix(start, "@"), strings.HasPrefix(end, "@"):
		return ruleDescriptor, nil
	case zone == "":
		return ruleDefaultTZ, nil
	case count == 0:
		return ruleZeroCount, nil
	}
	return "", fmt.Errorf("%w: accepted", errDiffers)
}

func kedaActive(r vectorRow) (string, error) {
	start, end, name := r.text("start"), r.text("end"), r.text("tz")
	now, _, err := rowTime(r.text("at"))
	if err != nil {
		return "", err
	}
	s, err := New(Config{
		Mode: InWindow, Bounds: scaling.Bounds{Max: 1000}, Outside: 1,
		Windows: []Window{{"w", start, end, 7, name}},
	})
	rules := []string{refusal(start), refusal(end), zoneRefusal(name)}
	if i := slices.IndexFunc(rules, func(rule string) bool { return rule != "" }); i >= 0 {
		return checkRefusal(rules[i], err)
	}
	if mustParse(quiet{}, start) == mustParse(quiet{}, end) {
		return checkRefusal(ruleSame, err)
	}
	if err != nil {
		return checkRefusal("", err)
	}
	zone := s.entries[0].clock.zone
	active := s.At(now).Replicas == 7

	// What the row says of the next instants must hold, unless the zone shifts before them.
	horizon := now
	for field, expr := range map[string]string{"nextstart": start, "nextend": end} {
		text := r.text(field)
		if text == "" {
			continue
		}
		rule, err := sameNext(expr, zone, now, text)
		if err != nil {
			return "", err
		}
		if rule != "" && active == r.bool("active") {
			return rule, nil
		}
		if next, _, err := rowTime(text); err == nil && next.After(horizon) {
			horizon = next
		}
	}
	if active == r.bool("active") {
		return "", nil
	}

	// It differs. The twin must say the same as we, and a rule must cover it.
	lastStart, _ := twinLast(start, zone, now)
	lastEnd, ended := twinLast(end, zone, now)
	if want := !ended || !lastStart.minute.Before(lastEnd.minute); active != want {
		return "", fmt.Errorf("%w: active %v, the twin has %v", errDiffers, active, want)
	}
	earliest := lastStart.at
	if lastEnd.at.Before(earliest) {
		earliest = lastEnd.at
	}
	if shiftsBetween(zone, earliest, horizon) {
		return ruleShift, nil
	}
	nextStart, _ := twinNext(start, zone, now)
	nextEnd, _ := twinNext(end, zone, now)
	startsNext := !nextEnd.Before(nextStart)
	if active == startsNext || nextStart.Equal(nextEnd) || lastStart.at.Equal(lastEnd.at) {
		return ruleLookAhead, nil
	}
	return "", fmt.Errorf("%w: active %v", errDiffers, active)
}

func seedMatch(r vectorRow) (string, error) {
	expr, name := r.text("spec"), r.text("tz")
	now, _, err := rowTime(r.text("now"))
	if err != nil {
		return "", err
	}
	s, err := New(Config{
		Mode: Match, Bounds: scaling.Bounds{Max: 1000},
		Policies: []Policy{{"p", expr, 7, name}},
	})
	for _, rule := range []string{refusal(expr), zoneRefusal(name)} {
		if rule != "" {
			return checkRefusal(rule, err)
		}
	}
	if err != nil {
		return checkRefusal("", err)
	}
	got := s.At(now).InForce
	if got == r.bool("match") {
		return "", nil
	}
	zone := s.entries[0].clock.zone
	last, ok := twinLast(expr, zone, now)
	if want := ok && now.Sub(last.at) < time.Minute; got != want {
		return "", fmt.Errorf("%w: matches %v, the twin has %v", errDiffers, got, want)
	}
	if shiftsBetween(zone, now, now) {
		return ruleShift, nil
	}
	return "", fmt.Errorf("%w: matches %v", errDiffers, got)
}

func robfigParse(r vectorRow) (string, error) {
	expr := r.text("spec")
	_, err := parse(expr)
	if !r.bool("ok") {
		if err == nil {
			return "", fmt.Errorf("%w: accepted", errDiffers)
		}
		return "", nil
	}
	rule := refusal(expr)
	if rule == ruleBadSpec {
		return "", fmt.Errorf("%w: robfig refuses it here", errDiffers)
	}
	if rule != "" || err != nil {
		return checkRefusal(rule, err)
	}
	for field := range r {
		if text, ok := strings.CutPrefix(field, "nextfrom"); ok {
			from, zone, err := rowTime(strings.ToUpper(text))
			if err != nil {
				return "", err
			}
			return sameNext(expr, zone, from, r.text(field))
		}
	}
	return "", nil
}

func robfigParseError(r vectorRow) (string, error) {
	if _, err := parse(r.text("spec")); err == nil {
		return "", fmt.Errorf("%w: accepted", errDiffers)
	}
	return "", nil
}

func robfigNext(r vectorRow) (string, error) {
	from, zone, err := rowTime(r.text("from"))
	if err != nil {
		return "", err
	}
	if name := r.text("tz"); name != "" {
		if zone, err = time.LoadLocation(name); err != nil {
			return "", err
		}
	}
	expr := r.text("spec")
	if refusal(expr) == rulePrefix {
		// Refused as it is. The rest of it is asked with the zone where it belongs.
		if _, err := parse(expr); err == nil {
			return "", fmt.Errorf("%w: accepted", errDiffers)
		}
		prefix, rest, _ := strings.Cut(strings.TrimSpace(expr), " ")
		_, name, _ := strings.Cut(prefix, "=")
		if zoneRefusal(name) != "" {
			return rulePrefix, nil
		}
		zone = mustZone(quiet{}, name)
		expr = rest
	}
	if rule := refusal(expr); rule != "" {
		_, err := parse(expr)
		if rule == ruleNever && err != nil && neverText(r.text("next")) {
			return "", nil
		}
		return checkRefusal(rule, err)
	}
	return sameNext(expr, zone, from, r.text("next"))
}

func robfigNextSeconds(r vectorRow) (string, error) {
	fields := strings.Fields(r.text("spec"))
	at := 0
	if len(fields) > 0 && strings.Contains(fields[0], "TZ=") {
		at = 1
	}
	if len(fields) > at && !strings.HasPrefix(fields[at], "@") {
		if len(fields) != at+6 {
			return "", fmt.Errorf("%w: not six fields", errDiffers)
		}
		if fields[at] != "0" && fields[at] != "00" {
			if _, err := parse(strings.Join(fields, " ")); err == nil {
				return "", fmt.Errorf("%w: six fields accepted", errDiffers)
			}
			return ruleSeconds, nil
		}
		fields = slices.Delete(fields, at, at+1)
	}
	return robfigNext(vectorRow{
		"from": r.text("from"), "next": r.text("next"), "tz": r.text("tz"), "spec": strings.Join(fields, " "),
	})
}

func neverText(text string) bool {
	return text == "" || strings.HasPrefix(text, "never") || strings.HasPrefix(text, "0001-01-01")
}

// sameNext compares the first fire after from with a recorded one.
func sameNext(expr string, zone *time.Location, from time.Time, recorded string) (string, error) {
	got := time.Unix(mustParse(quiet{}, expr).after(newClock(zone), from.Unix()), 0)
	asTwin := func(rule string) (string, error) {
		if want, ok := twinNext(expr, zone, from); !ok || !got.Equal(want) {
			return "", fmt.Errorf("%w: next is %v, the twin has %v", errDiffers, got.In(zone), want.In(zone))
		}
		return rule, nil
	}
	switch {
	case strings.HasPrefix(recorded, "HANGS"):
		return asTwin(ruleHang)
	case neverText(recorded):
		if got.Year() < from.Year()+5 {
			return "", fmt.Errorf("%w: next is %v", errDiffers, got)
		}
		return asTwin(ruleFiveYears)
	}
	want, _, err := rowTime(recorded)
	if err != nil {
		return "", err
	}
	if got.Equal(want) {
		return "", nil
	}
	last := want
	if got.After(last) {
		last = got
	}
	if shiftsBetween(zone, from, last) {
		return asTwin(ruleShift)
	}
	return "", fmt.Errorf("%w: next is %v", errDiffers, got.In(zone))
}

func robfigActivation(r vectorRow) (string, error) {
	now, zone, err := rowTime(r.text("time"))
	if err != nil {
		return "", err
	}
	expr := r.text("spec")
	s, err := parse(expr)
	if rule := refusal(expr); rule != "" || err != nil {
		return checkRefusal(rule, err)
	}
	last, _, ok := s.around(newClock(zone), now.Unix())
	if got := ok && last.at == now.Unix(); got != r.bool("fires") {
		return "", fmt.Errorf("%w: fires %v", errDiffers, got)
	}
	return "", nil
}

// robfigField tries an expression in the field that has its bounds, or in the minutes if none has.
func robfigField(r vectorRow) (string, error) {
	low, ok1 := r.number("min")
	high, ok2 := r.number("max")
	if !ok1 || !ok2 {
		return "", fmt.Errorf("%w: no bounds", errDiffers)
	}
	field, exact := 0, false
	for i, bounds := range [][2]float64{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}} {
		if bounds == [2]float64{low, high} {
			field, exact = i, true
		}
	}
	fields := []string{"*", "*", "*", "*", "*"}
	fields[field] = r.text("expr")
	s, err := parse(strings.Join(fields, " "))
	got := [][2]uint64{{s.minute, allMinutes}, {s.hour, allHours}, {s.dom, allDays}, {s.month, allMonths}, {s.dow, allWeek}}[field]
	number, isNumber := r.number("bits")
	want := uint64(number)
	for term := range strings.SplitSeq(r.text("bits"), "|") {
		term = strings.ReplaceAll(strings.TrimSpace(term), " ", "")
		shift, isShift := strings.CutPrefix(term, "1<<")
		n, bad := strconv.ParseUint(shift, 0, 64)
		switch {
		case term == "starBit", term == "zero", term == "" && isNumber:
		case bad != nil || isShift && n > 63:
			return "", fmt.Errorf("%w: bits %q", errDiffers, term)
		case isShift:
			want |= 1 << n
		default:
			want |= n
		}
	}
	want &= got[1]
	refused := r.text("error") != ""
	if refused == (err != nil) && (refused || got[0] == want) {
		return "", nil
	}
	switch {
	case errors.Is(err, errNever) && want == 0 && !refused:
		return ruleNever, nil
	case !exact && needsBounds(r):
		return ruleNoField, nil
	}
	return "", fmt.Errorf("%w: bits %b, want %b, refused %v", errDiffers, got[0], want, err != nil)
}

// needsBounds reports whether what an expression means depends on the bounds of its field.
func needsBounds(r vectorRow) bool {
	for term := range strings.SplitSeq(r.text("expr"), ",") {
		if strings.ContainsAny(term, "*?") || strings.Contains(term, "/") && !strings.Contains(term, "-") {
			return true
		}
	}
	return strings.Contains(r.text("error"), "minimum") || strings.Contains(r.text("error"), "maximum")
}
