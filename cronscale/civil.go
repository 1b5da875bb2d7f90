package cronscale

import "math/bits"

// A civil minute is a minute of the calendar and the wall clock, without a zone: the number of minutes since midnight of
// 1 January 1970, as if every day had 1440 of them.
const (
	minutesPerDay = 24 * 60
	// searchYears bounds a search: 29 February is at most this many years away.
	searchYears = 8
)

// first returns the first civil minute at or after from that the schedule has.
func (s schedule) first(from int64) (int64, bool) {
	day, minute := divide(from, minutesPerDay)
	year, month, dom := dateOf(day)
	if s.days(year, month)>>dom&1 != 0 {
		if m, ok := s.firstOfDay(minute); ok {
			return day*minutesPerDay + m, true
		}
	}
	start, ok := s.firstOfDay(0)
	if !ok {
		return 0, false
	}
	dom++
	for limit := year + searchYears; year <= limit; {
		if left := s.days(year, month) >> dom; left != 0 {
			day = dayOf(year, month, dom+int64(bits.TrailingZeros64(left)))
			return day*minutesPerDay + start, true
		}
		dom = 1
		if month++; month > 12 {
			year, month = year+1, 1
		}
	}
	return 0, false
}

// last returns the last civil minute at or before until that the schedule has.
func (s schedule) last(until int64) (int64, bool) {
	day, minute := divide(until, minutesPerDay)
	year, month, dom := dateOf(day)
	if s.days(year, month)>>dom&1 != 0 {
		if m, ok := s.lastOfDay(minute); ok {
			return day*minutesPerDay + m, true
		}
	}
	end, ok := s.lastOfDay(minutesPerDay - 1)
	if !ok {
		return 0, false
	}
	for limit := year - searchYears; year >= limit; {
		if left := s.days(year, month) & (1<<dom - 1); left != 0 {
			day = dayOf(year, month, int64(bits.Len64(left))-1)
			return day*minutesPerDay + end, true
		}
		dom = 32
		if month--; month < 1 {
			year, month = year-1, 12
		}
	}
	return 0, false
}

// without returns the first civil minute at or after from that the schedule does not have, or endless if it has them all. If the
// schedule has every minute for more than a year from there, the result is a minute that it has.
func (s schedule) without(from int64) int64 {
	const limit = 400 * minutesPerDay
	if every := (schedule{minute: allMinutes, hour: allHours, dom: allDays, month: allMonths, dow: allWeek}); s == every {
		return endless
	}
	for m := from; m < from+limit; {
		day, inDay := divide(m, minutesPerDay)
		year, month, dom := dateOf(day)
		hour, inHour := inDay/60, inDay%60
		if s.days(year, month)>>dom&1 == 0 || s.hour>>hour&1 == 0 {
			return m
		}
		run := int64(bits.TrailingZeros64(^(s.minute >> inHour)))
		switch m += run; {
		case inHour+run < 60:
			return m
		case s.minute == allMinutes && s.hour == allHours:
			m = (day + 1) * minutesPerDay
		}
	}
	return from + limit
}

// firstOfDay returns the first minute of a day, counted from midnight, that is at or after from.
func (s schedule) firstOfDay(from int64) (int64, bool) {
	hour, minute := from/60, from%60
	if s.hour>>hour&1 != 0 {
		if left := s.minute >> minute; left != 0 {
			return from + int64(bits.TrailingZeros64(left)), true
		}
	}
	left := s.hour >> (hour + 1)
	if left == 0 || s.minute == 0 {
		return 0, false
	}
	hour += 1 + int64(bits.TrailingZeros64(left))
	return hour*60 + int64(bits.TrailingZeros64(s.minute)), true
}

// lastOfDay returns the last minute of a day, counted from midnight, that is at or before until.
func (s schedule) lastOfDay(until int64) (int64, bool) {
	hour, minute := until/60, until%60
	if s.hour>>hour&1 != 0 {
		if left := s.minute & (2<<minute - 1); left != 0 {
			return hour*60 + int64(bits.Len64(left)) - 1, true
		}
	}
	left := s.hour & (1<<hour - 1)
	if left == 0 || s.minute == 0 {
		return 0, false
	}
	hour = int64(bits.Len64(left)) - 1
	return hour*60 + int64(bits.Len64(s.minute)) - 1, true
}

// days returns the days of a month that the schedule has, bit i for day i.
func (s schedule) days(year, month int64) uint64 {
	if s.month>>month&1 == 0 {
		return 0
	}
	// 1 January 1970 was a Thursday. The week, turned to begin with the weekday of the month's first day and repeated
	// five times, covers every month.
	_, weekday := divide(dayOf(year, month, 1)+4, 7)
	week := (s.dow>>weekday | s.dow<<(7-weekday)) & allWeek
	weeks := week * (1 | 1<<7 | 1<<14 | 1<<21 | 1<<28) << 1
	days := s.dom & weeks
	if s.either {
		days = s.dom | weeks
	}
	return days & (2<<monthLength(year, month) - 2)
}

func monthLength(year, month int64) int64 {
	switch {
	case month != 2:
		return 30 + (month+month>>3)&1
	case year%4 == 0 && (year%100 != 0 || year%400 == 0):
		return 29
	}
	return 28
}

// dayOf returns the number of days from 1 January 1970 to a date of the Gregorian calendar.
//
// Years begin in March, so that the leap day is their last day, and are counted in eras of 400 years, after which the calendar
// repeats.
func dayOf(year, month, dom int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era, inEra := divide(year, 400)
	inYear := (153*(month-3)+2)/5 + dom - 1
	return era*146097 + inEra*365 + inEra/4 - inEra/100 + inYear - 719468
}

// dateOf is the inverse of dayOf.
func dateOf(day int64) (year, month, dom int64) {
	era, d := divide(day+719468, 146097)
	inEra := (d - d/1460 + d/36524 - d/146096) / 365
	inYear := d - (365*inEra + inEra/4 - inEra/100)
	m := (5*inYear + 2) / 153
	dom = inYear - (153*m+2)/5 + 1
	year, month = era*400+inEra, m+3
	if month > 12 {
		year++
		month -= 12
	}
	return year, month, dom
}

// divide returns the quotient, rounded down, and the remainder.
func divide(a, b int64) (quotient, remainder int64) {
	quotient, remainder = a/b, a%b
	if remainder < 0 {
		quotient--
		remainder += b
	}
	return quotient, remainder
}
