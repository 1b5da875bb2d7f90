package traces

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// BlockTokens is the number of tokens of a block in the traces with blocks: the value of sim.Scenario.BlockTokens for them.
const BlockTokens = 512

// The fields of a line of Mooncake's traces, and the column with the part of a prompt that had occurred before.
const (
	timestampField = "timestamp"
	inputField     = "input_length"
	outputField    = "output_length"
	hashField      = "hash_ids"
	cachedColumn   = "cached_prefix_blocks_512"
)

const lineForm = "must be an object with timestamp, input_length and output_length, numbers, and hash_ids, a list of whole numbers that are not negative"

// A line is a request in the form of Mooncake's traces. Other fields are ignored.
type line struct {
	Timestamp typed.Once[json.Number] `json:"timestamp"` // milliseconds
	Input     typed.Once[json.Number] `json:"input_length"`
	Output    typed.Once[json.Number] `json:"output_length"`
	Hashes    typed.Once[[]uint64]    `json:"hash_ids"`
}

// readLines reads one request per line.
func readLines(t *table) (sim.Workload, error) {
	t.names = []string{timestampField, inputField, outputField, hashField}
	t.record = make([]string, len(t.names))
	return t.requests(func() (*sim.Request, error) {
		text, err := t.object()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			rule := lineForm
			if twice := new(scaling.FieldError); errors.As(err, &twice) {
				rule = "must have each field once"
			}
			return nil, &RowError{File: t.file, Line: t.line, Rule: rule, Err: err}
		}
		t.record[0], t.record[1], t.record[2] = l.Timestamp.Value.String(), l.Input.Value.String(), l.Output.Value.String()
		hashes := l.Hashes.Value
		t.record[3] = fmt.Sprint(len(hashes))
		r, err := t.request([]int{0, 1, 2})
		if err != nil {
			return nil, err
		}
		if int64(len(hashes))*BlockTokens >= int64(r.Input)+BlockTokens {
			return nil, t.wrong(3, fmt.Sprintf("must have at most one id for each %d tokens of the prompt", BlockTokens))
		}
		// The last block of a prompt is not full, and the trace does not contain what fills it.
		r.Blocks = slices.Clip(hashes[:min(len(hashes), int(r.Input/BlockTokens))])
		return r, nil
	})
}

// object returns the next line that is not blank. At the end of the file it returns io.EOF.
func (t *table) object() ([]byte, error) {
	for t.lines.Scan() {
		t.line++
		t.source.start = t.source.given // the scanner has its own limit
		if text := bytes.TrimSpace(t.lines.Bytes()); len(text) > 0 {
			return text, nil
		}
	}
	if err := t.lines.Err(); err != nil {
		return nil, &RowError{File: t.file, Line: t.line + 1, Rule: lineRule(err), Err: err}
	}
	return nil, io.EOF
}

// fields reads the fields with the names of the columns from the next line. One that is not there, or null, is empty.
func (t *table) fields() error {
	text, err := t.object()
	if err != nil {
		return err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return &RowError{File: t.file, Line: t.line, Rule: "must be a JSON object", Err: err}
	}
	for i, name := range t.names {
		t.record[i] = field(object, name)
	}
	return nil
}

// field returns the content of a field, or of one within it.
func field(object map[string]json.RawMessage, name string) string {
	raw, ok := object[name]
	if outer, inner, nested := strings.Cut(name, "."); !ok && nested {
		var in map[string]json.RawMessage
		_ = json.Unmarshal(object[outer], &in) // what is no object has no fields
		return field(in, inner)
	}
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil { // null leaves it empty
		return strings.TrimSpace(text)
	}
	return string(raw)
}

func lineRule(err error) string {
	if err == bufio.ErrTooLong { //nolint:errorlint // the scanner returns it unwrapped
		return errLongRecord.Error()
	}
	return err.Error()
}

// A forest generates ids of blocks if only the number of a prompt's known blocks is recorded: each prompt begins like the
// latest one that has that many blocks.
type forest struct {
	latest [][]uint64 // without those for which a later one is at least as long; the longest first
	fresh  uint64
}

// blocks returns the ids of a prompt with all blocks of which the first known have occurred before, or false if no earlier
// prompt had as many.
func (f *forest) blocks(all, known int) ([]uint64, bool) {
	i, _ := slices.BinarySearchFunc(f.latest, known, func(blocks []uint64, known int) int {
		if len(blocks) >= known {
			return -1
		}
		return 1
	})
	i-- // the last one with that many
	if known > 0 && i < 0 {
		return nil, false
	}
	ids := make([]uint64, 0, all)
	if known > 0 {
		ids = append(ids, f.latest[i][:known]...)
	}
	for len(ids) < all {
		f.fresh++
		ids = append(ids, f.fresh)
	}
	for len(f.latest) > 0 && len(f.latest[len(f.latest)-1]) <= all {
		f.latest = f.latest[:len(f.latest)-1]
	}
	f.latest = append(f.latest, ids)
	return ids, true
}

// PrefixShare returns the share of a trace's prompt tokens that one instance with an unlimited prefix cache does not
// compute: the highest possible hit rate, 0 without requests. A block counts if it and all blocks before it were in an earlier
// prompt; the last token of a prompt is always computed.
func PrefixShare(trace sim.Trace) float64 {
	seen := map[uint64]bool{}
	tokens, hits := 0.0, 0.0
	for i := range trace.Requests {
		r := &trace.Requests[i]
		tokens += float64(r.Input)
		for n, id := range r.Blocks {
			if !seen[id] || (n+1)*BlockTokens >= int(r.Input) {
				break
			}
			hits += BlockTokens
		}
		for _, id := range r.Blocks {
			seen[id] = true
		}
	}
	if tokens == 0 {
		return 0
	}
	return hits / tokens
}
