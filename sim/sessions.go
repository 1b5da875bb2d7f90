package sim

import (
	"math"
	"time"

	"github.com/inferscale/inferscale/internal/splitmix"
	"github.com/inferscale/inferscale/scaling"
)

// Sessions is closed-loop traffic: users who read an answer, think, and ask again. When a request arrives depends on when
// the one before it was answered, and so on the fleet. Its content does not: the n-th request of the k-th session has the
// same prompt, answer and think time under every policy, on every replica.
//
// A slow fleet gets fewer requests. It must not look better for that, so shares of requests refer to at least the number of
// requests of the reference, in which each answer takes what Reference says: see Result.Reference. They also include the requests
// that users of the reference would have sent while users of this run waited for an answer that was later, or that never came:
// see Result.Omitted. A request that would come
// after Duration is not sent. A session ends if its request is refused, or if its next prompt would be longer than Context.
//
// When a workload is read without a fleet, as by package oracle, it is the traffic of the reference: see Arrivals.
type Sessions struct {
	// First says when sessions begin: its requests are their first requests.
	First Workload
	// Turns is the number of requests of a session, the first one included.
	Turns Length
	// Think is the time from the last token of an answer to the next request.
	Think Delay
	// Question is the number of tokens that a request adds to the prompt and the answer before it, and Answer that of its
	// answer.
	Question, Answer Length
	// Context is the longest prompt; 0 is no limit.
	Context int32
	// Shared is the number of tokens with which all prompts begin, for prefix caches.
	Shared int32
	// Reference has the times of an answer in the reference: the first token comes after TTFT, each further one after TPOT.
	Reference SLO
}

// closed returns a workload as Sessions, if it is one, whether by value or by a pointer.
func closed(w Workload) (s Sessions, ok bool) {
	if p, ok := w.(*Sessions); ok {
		return *p, true
	}
	s, ok = w.(Sessions)
	return s, ok
}

// A turn is one request of a session.
type turn struct {
	session       uint64
	number        int32 // from 0 on
	of            int32 // number of requests of the session
	input, output int32
}

// Duration returns the duration of First.
func (s Sessions) Duration() time.Duration { return lasting(s.First) }

// Validate reports every wrong field at once, under field.
func (s Sessions) Validate(field string) error {
	var e scaling.FieldErrors
	e.Check(s.First != nil, field+".first", s.First, "must be set")
	if s.First != nil {
		_, nested := closed(s.First)
		e.Check(!nested, field+".first", "Sessions", "must be open loop")
		e.Add(s.First.Validate(field + ".first"))
	}
	e.Add(s.Turns.Validate(field + ".turns"))
	e.Add(s.Question.Validate(field + ".question"))
	e.Add(s.Answer.Validate(field + ".answer"))
	e.Check(s.Think.Median >= 0 && s.Think.Median <= MaxDuration, field+".think.median", s.Think.Median, "must be within 0 and 90 days")
	e.Check(s.Think.Sigma >= 0 && s.Think.Sigma <= 10, field+".think.sigma", s.Think.Sigma, "must be within 0 and 10")
	e.Check(s.Think.Max >= 0 && s.Think.Max <= MaxDuration, field+".think.max", s.Think.Max, "must be within 0 and 90 days")
	e.Check(s.Context >= 0, field+".context", s.Context, "must not be negative")
	e.Check(s.Shared >= 0, field+".shared", s.Shared, "must not be negative")
	e.Check(s.Reference.TTFT >= 0 && s.Reference.TTFT <= MaxDuration, field+".reference.ttft", s.Reference.TTFT, "must be within 0 and 90 days")
	e.Check(s.Reference.TPOT >= 0 && s.Reference.TPOT <= 24*time.Hour, field+".reference.tpot", s.Reference.TPOT, "must be within 0 and 24h")
	return e.Err()
}

// begin returns the first turn of a session.
func (s Sessions) begin(seed, session uint64, first Request) turn {
	return turn{session: session, of: s.Turns.draw(draw(seed, streamSession, session, 0)), input: first.Input, output: first.Output}
}

// after returns the next turn and the time that its user thinks before it, or false if the session ends.
func (s Sessions) after(seed uint64, t turn) (next turn, think int64, more bool) {
	t.number++
	random := draw(seed, streamSession, t.session, uint64(t.number))
	think = s.Think.draw(random)
	prompt := int64(t.input) + int64(t.output) + int64(s.Question.draw(random))
	limit := int64(math.MaxInt32)
	if s.Context > 0 {
		limit = int64(s.Context)
	}
	if t.number >= t.of || prompt > limit {
		return t, 0, false
	}
	t.input, t.output = int32(prompt), s.Answer.draw(random)
	return t, think, true
}

// blocks returns the ids of a turn's blocks: the shared ones, then those of its session, which each request continues.
func (s Sessions) blocks(t turn, size int32) []uint64 {
	ids := make([]uint64, (int64(t.input)+int64(t.output))/int64(size))
	for i := range ids {
		of := t.session + 1
		if int64(i+1)*int64(size) <= int64(s.Shared) {
			of = 0
		}
		ids[i] = splitmix.Mix(splitmix.Mix(of+splitmix.Golden) ^ uint64(i))
	}
	return ids
}

// answer returns how long an answer takes in the reference.
func (s Sessions) answer(t turn) time.Duration {
	return s.Reference.TTFT + time.Duration(min(float64(t.output-1)*float64(s.Reference.TPOT), float64(MaxDuration)))
}

// Arrivals returns the requests of the reference, in which each answer takes the same time.
func (s Sessions) Arrivals(seed uint64) Arrivals {
	next := s.First.Arrivals(seed)
	first, more := next()
	end := s.Duration()
	var later delayed[turn] // by time and session
	begun := uint64(0)
	return func() (Request, bool) {
		var r Request
		var t turn
		if more && int64(first.At) <= later.heap.due() {
			t = s.begin(seed, begun, first)
			begun++
			r.At = first.At
			first, more = next()
		} else if len(later.heap) > 0 {
			r.At = time.Duration(later.heap[0].at)
			t = later.pop()
		} else {
			return r, false
		}
		r.Input, r.Output = t.input, t.output
		if next, think, more := s.after(seed, t); more {
			if at := r.At + s.answer(t) + elapsed(think); at < end {
				later.push(int64(at), int64(t.session), next)
			}
		}
		return r, true
	}
}

// users is the state of the users in a run with Sessions.
type users struct {
	*Sessions

	begun     uint64
	turns     []turn        // of jobs
	thinking  delayed[turn] // users who think, with their next turns, by time and session
	reference int64
	omitted   int64
	counted   int64        // of the reference, that were counted
	check     func() error // that of the run
	stopped   error        // its error: nothing is counted any more
}

// asked counts the requests of a session in the reference from a turn at a time on, up to another time. Those may be many, of any
// number of answers, so it looks at the context itself.
func (u *users) asked(seed uint64, at, until time.Duration, t turn) (n int64) {
	end := min(until, u.Duration())
	for more := true; more && at < end && u.stopped == nil; n++ {
		answered := at + u.answer(t)
		var think int64
		t, think, more = u.after(seed, t)
		at = answered + elapsed(think)
		if u.counted++; u.counted%looks == 0 {
			u.stopped = u.check()
		}
	}
	return n
}

// begins makes an arriving job the first request of a session.
func (u *users) begins(e *engine, j int32) {
	t := u.begin(e.seed, u.begun, e.arrival)
	u.begun++
	u.reference += u.asked(e.seed, e.arrival.At, u.Duration(), t)
	u.takes(e, j, t)
}

// takes makes a job a turn of a session.
func (u *users) takes(e *engine, j int32, t turn) {
	for len(u.turns) < len(e.jobs) {
		u.turns = append(u.turns, turn{})
	}
	u.turns[j] = t
	if size := e.scenario.BlockTokens; size > 0 {
		e.prompts[j].blocks = u.blocks(t, size)
	}
}

// waited counts what the user of a job would have asked in the reference, and been answered, before a time while the job was not.
func (u *users) waited(e *engine, j int32, until time.Duration) {
	t := u.turns[j]
	u.omitted += max(0, u.asked(e.seed, elapsed(e.jobs[j].arrived), until-u.answer(t), t)-1)
}

// reads lets the user of a finished job think about the answer.
func (u *users) reads(e *engine, j int32) {
	u.waited(e, j, elapsed(e.now))
	next, think, more := u.after(e.seed, u.turns[j])
	if !more || think >= ticks(u.Duration())-e.now {
		return
	}
	u.thinking.push(e.now+think, int64(next.session), next)
	e.agenda.set(slotUser, u.thinking.heap.due())
}

// asks sends the request of the user whose think time has ended.
func (u *users) asks(e *engine) {
	t := u.thinking.pop()
	j := e.newJob(Request{Input: t.input, Output: t.output})
	u.takes(e, j, t)
	e.agenda.set(slotUser, u.thinking.heap.due())
	e.enter(j)
}
