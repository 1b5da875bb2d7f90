package suite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// Replicas is the approximate number of replicas that the highest load of a row needs.
const Replicas = 9

// A Row is a scenario of the scoreboard, given by its parts. As text it is "shape/pattern/cold start/server", for example
// "chat/ramp/100s/qwen".
type Row struct {
	Shape     string        `json:"shape"`
	Pattern   string        `json:"pattern"`
	ColdStart time.Duration `json:"coldStart"`
	Server    string        `json:"server"`
}

// String returns the row in the form that Parse reads.
func (r Row) String() string {
	cold := strconv.FormatFloat(r.ColdStart.Seconds(), 'f', -1, 64) // no exponent: a time.Duration has none
	return fmt.Sprintf("%s/%s/%ss/%s", r.Shape, r.Pattern, cold, r.Server)
}

// Parse reads a row. It returns all errors at once, each a *scaling.FieldError.
func Parse(text string) (Row, error) {
	part := strings.Split(text, "/")
	if len(part) != 4 {
		return Row{}, &scaling.FieldError{Field: "row", Value: text, Rule: "must be shape/pattern/cold start/server"}
	}
	cold, err := time.ParseDuration(part[2])
	if err != nil {
		return Row{}, &scaling.FieldError{Field: "coldStart", Value: part[2], Rule: "must be a time, as 100s"}
	}
	r := Row{Shape: part[0], Pattern: part[1], ColdStart: cold, Server: part[3]}
	return r, r.Validate()
}

// Validate reports every wrong part at once, each as a *scaling.FieldError.
func (r Row) Validate() error {
	var e scaling.FieldErrors
	one := func(name, value string, of []string) {
		e.Check(slices.Contains(of, value), name, value, "must be one of "+strings.Join(of, ", "))
	}
	if slices.Contains(Recorded(), r.Shape) {
		one("pattern", r.Pattern, []string{recorded})
	} else {
		one("shape", r.Shape, append(Shapes(), Recorded()...))
		one("pattern", r.Pattern, append(Patterns(), recurring))
	}
	one("server", r.Server, Servers())
	e.Check(r.ColdStart > 0 && r.ColdStart <= time.Hour, "coldStart", r.ColdStart, "must be above 0 and at most 1h")
	return e.Err()
}

// Shapes returns the shapes of synthetic requests.
func Shapes() []string { return []string{"chat", "code", "docs", "reason", "agents", "drift"} }

// Patterns returns the patterns of two hours of synthetic load. There is one more, weekdays, of four days.
func Patterns() []string { return append(regular(), "bursts", "clients", "noise", "steps") }

// regular returns the patterns with a simple formula, which occur twice in Full.
func regular() []string { return []string{"steady", "ramp", "day", "flash", "onoff", "walk"} }

// Servers returns the servers: 8B on one card, 32B on two and 70B on eight.
func Servers() []string { return []string{"small", "qwen", "a100"} }

// ColdStarts returns the cold starts.
func ColdStarts() []time.Duration {
	return []time.Duration{30 * time.Second, 100 * time.Second, 300 * time.Second, 600 * time.Second}
}

const (
	recorded  = "recorded" // the pattern of recordings
	recurring = "weekdays" // the pattern of four days that are alike
)

// server returns a server by its name.
func server(name string) sim.Server {
	switch name {
	case "qwen":
		return sim.Qwen32B()
	case "a100":
		return sim.Llama70BA100()
	default: // 8B in bfloat16 on one card of 80 GB: 16 GB of weights, 128 KiB of cache a token
		return sim.Server{
			Name: "8B on 1 H100", Base: 0.007, PrefillToken: 1.0 / 22000, Sequence: 3e-5, KVToken: 30e-9,
			MaxSeqs: 256, TokenBudget: 8192, KVTokens: 400_000,
		}
	}
}

// Full returns the rows of the scoreboard: every shape with every pattern of two hours, twice with the regular ones, the recordings, and
// some shapes on weekdays. Cold starts and servers alternate so that each of them meets every shape, every pattern and each other, but
// weekdays are all on the largest server, of which a fleet has the fewest requests.
func Full() []Row {
	var rows []Row
	cold, servers := ColdStarts(), Servers()
	for i, shape := range Shapes() {
		for k, pattern := range Patterns() {
			a, b := (i+k)%4, (i+2*k)%3
			rows = append(rows, Row{shape, pattern, cold[a], servers[b]})
			if k < len(regular()) {
				rows = append(rows, Row{shape, pattern, cold[(a+2)%4], servers[(b+1)%3]})
			}
		}
	}
	for i, name := range Recorded() {
		rows = append(rows,
			Row{name, recorded, cold[1], servers[(i+1)%3]},
			Row{name, recorded, cold[2], servers[i%3]})
	}
	for i, shape := range []string{"code", "agents", "docs"} {
		rows = append(rows, Row{shape, recurring, cold[i+1], "a100"})
	}
	return rows
}

// Quick returns a few of the rows, in which every shape, pattern, cold start and server occurs at least once.
func Quick() []Row {
	return []Row{
		{"chat", "ramp", 100 * time.Second, "a100"},
		{"code", "walk", 300 * time.Second, "small"},
		{"docs", "day", 600 * time.Second, "qwen"},
		{"reason", "onoff", 100 * time.Second, "a100"},
		{"agents", "steady", 100 * time.Second, "qwen"},
		{"drift", "flash", 30 * time.Second, "a100"},
		{"code", "bursts", 100 * time.Second, "a100"},
		{"chat", "clients", 100 * time.Second, "small"},
		{"reason", "noise", 100 * time.Second, "qwen"},
		{"docs", "steps", 100 * time.Second, "a100"},
	}
}

// Cards returns how many cards a replica of a server has.
func Cards(server string) int {
	switch server {
	case "qwen":
		return 2
	case "a100":
		return 8
	default:
		return 1
	}
}
