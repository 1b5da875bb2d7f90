package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/sim"
)

// A journal is a file of runs, one a line, by which a suite that was ended goes on where it stood. It is believed: the runs of a
// policy that has changed since are to be deleted from it. A nil journal keeps nothing.
type journal struct {
	mutex sync.Mutex
	file  *os.File
	runs  map[judged]sim.Result
}

// A journaled is a line of it; the seed is that of the result.
type journaled struct {
	Policy string     `json:"policy"`
	Row    string     `json:"row"`
	Result sim.Result `json:"result"`
}

// longestRun is how long a line may be, in bytes.
const longestRun = 1 << 20

// beginning is that of every line.
const beginning = `{"policy":`

// openJournal reads a journal, or begins one. A last line without an end is a run that was ended while it was written: it is cut off,
// and made again. Another file is left as it is.
func openJournal(name string) (_ *journal, err error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", name, err), file.Close())
		}
	}()
	j := &journal{file: file, runs: map[judged]sim.Result{}}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("must be a regular file"))
	}
	lines, whole := bufio.NewReaderSize(file, longestRun), int64(0)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			if text := string(line); !strings.HasPrefix(text, beginning) && !strings.HasPrefix(beginning, text) {
				return nil, fmt.Errorf("line %d: is no run", n)
			}
			break
		}
		if err != nil { // that the buffer is full, if not what reading failed with
			return nil, fmt.Errorf("line %d: must be a run, of at most %d bytes: %w", n, longestRun, err)
		}
		whole += int64(len(line))
		var one journaled
		if err := one.read(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		j.runs[judged{one.Policy, one.Row, one.Result.Seed}] = one.Result
	}
	if err := file.Truncate(whole); err != nil {
		return nil, err
	}
	_, err = file.Seek(whole, io.SeekStart)
	return j, err
}

// read reads a line. What is unknown, or cannot be, is of another version or of another hand.
func (j *journaled) read(line []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(j); errors.Is(err, io.EOF) {
		return errors.New("is no run")
	} else if err != nil {
		return typed.Error(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("must be one run")
	}
	r := &j.Result
	if j.Policy == "" || j.Row == "" || r.Seed == 0 {
		return errors.New("must have a policy, a row and the result of a seed")
	}
	var e scaling.FieldErrors
	for _, share := range []struct {
		name  string
		value float64
	}{{"attainment", r.Attainment}, {"attainedTTFT", r.AttainedTTFT}, {"attainedTPOT", r.AttainedTPOT}} {
		e.Check(share.value >= 0 && share.value <= 1, "result."+share.name, share.value, "must be within 0 and 1")
	}
	none := j.Policy == oracleName && r.Attainment == 0 && r.ReplicaHours == 0 // no schedule attains the goal
	e.Check(r.ReplicaHours > 0 && r.ReplicaHours <= 1e12 || none, "result.replicaHours", r.ReplicaHours, "must be above 0 and at most 1e12")
	var there struct{ Result struct{ Attainment *float64 } }
	if err := json.Unmarshal(line, &there); err == nil && there.Result.Attainment == nil { // which may be 0
		e.Add(errors.New("result.attainment: must be there"))
	}
	e.Check(r.Requests >= 1 || none && r.Requests == 0, "result.requests", r.Requests, "must be at least 1")
	return e.Err()
}

// made returns a run that is known, or else makes it and notes it.
func (j *journal) made(of judged, run func() (sim.Result, error)) (sim.Result, error) {
	if j == nil {
		return run()
	}
	j.mutex.Lock()
	r, ok := j.runs[of]
	j.mutex.Unlock()
	if ok {
		return r, nil
	}
	r, err := run()
	if err != nil {
		return r, err
	}
	r.Seed, r.Timeline, r.TTFTHistogram = of.seed, nil, nil
	var line bytes.Buffer
	if err := json.NewEncoder(&line).Encode(journaled{of.policy, of.row, r}); err != nil {
		return r, err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	_, err = j.file.Write(line.Bytes())
	return r, err
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}
