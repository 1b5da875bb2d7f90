// Package forecast raises a policy to what earlier days needed at this time: [New] puts a floor under any scaling.Policy. The
// floor is high enough for the demand that is expected by the time a replica requested now is ready.
//
//	L        = P90 of the last 20 starts + a scrape + a decision             each within an hour; 5 min until one was seen
//	today    = today's last 30 min / the same 30 min of another day          within [0.5, 2], some minutes early or late
//	expected = q90 over other days of  today * max over [now-10m, now+L+10m] of that day's demand
//	r        = expected / what one replica takes
//	floor    = ceil(r + Spread sqrt(r))
//	replicas = max(the policy's, floor)
//
// Other days are the last three days (Daily), or the same weekday of the last two weeks (Weekly), by the clock of
// Config.Location. Both methods are backtested every five minutes on what really came. A method counts only while its pinball
// loss is below 0.7 of that of a constant, and while it has not lost more today than it wins in two hours on average. If
// both count, the one that wins by more is in force. So the floor costs nothing on traffic without seasons and on the first
// day, and little on a holiday.
//
// Missing data cause no forecast. A demand that is known as an interval raises the count by its lower end, and prevents a
// scale-down by its upper end. While it is unknown, nothing is raised. A day that was not observed is not used.
//
// A [Source] reads the demand from what the policy sees or decides: the method Demand of proportional.Metric, or the
// function capacity.Demand. docs/forecast.md has the mathematics and the measurements.
package forecast
