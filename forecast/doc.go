// Package forecast lifts a policy to what other days needed at this time: [New] puts a floor under any scaling.Policy that
// is high enough, a start ahead, for the demand that is expected.
//
//	L        = P90 of the last 20 starts + a scrape + a decision             each within an hour; 5 min until one was seen
//	today    = today's last 30 min / the same 30 min of another day          within [0.5, 2]
//	expected = q90 over other days of  today * max over [now-10m, now+L+10m] of that day's demand
//	r        = expected / what one replica takes
//	floor    = ceil(r + Spread sqrt(r))
//	replicas = max(the policy's, floor)
//
// Other days are yesterday and the two before (Daily), or the same weekday of the last two weeks (Weekly), by the clock of
// Config.Location. Both are backtested every five minutes on what came: a method counts only while its pinball loss is
// below 0.7 of that of a constant, and today it has not lost more than it wins in two hours in the mean; the one that
// wins by more is in force. So traffic without seasons costs nothing, a holiday little, and the first day nothing.
//
// What is missing makes no forecast: a demand that is known within an interval lifts by its lower end, and keeps from
// going down by its upper; while it is not known at all nothing is lifted, and a day that was not seen is no day to go by.
//
// The demand is read off what the policy sees or decided by a [Source]: proportional.Metric's method Demand, or the
// function capacity.Demand. The mathematics, and what was measured, are in docs/forecast.md.
package forecast
