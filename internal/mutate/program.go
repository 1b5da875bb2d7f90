package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A program is a package whose tests are built with all of its changes.
type program struct {
	name, dir, work, here string
	sources               map[string][]byte // by path
	mutants               []*mutant
	possible              int // changes, with those that do not compile
	dropped               int // changes that do not compile
	binary                string
	quick, usual          []string       // flags for few cases, and for as many as usual
	tests                 []test         // the fastest first
	noticed               map[string]int // changes, by slow test: who noticed most is asked first
}

// A test is one of the package's, with the changes that it reaches.
type test struct {
	name  string
	takes time.Duration
	reach map[int]bool
}

// lateMark ends the name of who noticed a change by not coming to an end.
const lateMark = " (time)"

// load reads a package and finds its changes.
func load(name string) (*program, error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}} {{.Dir}}{{if not .DepOnly}}{{range .GoFiles}} {{.}}{{end}}{{end}}", name).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", name, err)
	}
	exports := map[string]string{}
	var self []string
	for line := range strings.Lines(string(out)) {
		self = strings.Fields(line) // the package itself comes last
		exports[self[0]] = self[1]
	}
	p := &program{name: name, dir: self[2], sources: map[string][]byte{}, noticed: map[string]int{}}
	if p.here, err = os.Getwd(); err == nil {
		p.work, err = os.MkdirTemp("", "mutate")
	}
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, base := range self[3:] {
		path := filepath.Join(p.dir, base)
		if p.sources[path], err = os.ReadFile(path); err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(set, path, p.sources[path], 0)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	pkg, err := config.Check(self[0], set, files, info)
	if err != nil {
		return nil, err
	}
	for i, file := range files {
		path := filepath.Join(p.dir, self[3+i])
		f := finder{set: set, file: p.rel(path), source: p.sources[path], info: info, pkg: pkg, names: map[string]string{}, next: len(p.mutants), count: map[string]int{}}
		for _, s := range file.Imports {
			imported, _ := strconv.Unquote(s.Path.Value)
			f.names[imported] = "skip"
			for _, q := range pkg.Imports() {
				if q.Path() == imported {
					f.names[imported] = q.Name()
				}
			}
			if s.Name != nil {
				f.names[imported] = s.Name.Name
			}
		}
		ast.Inspect(file, f.find)
		p.mutants = append(p.mutants, f.all...)
	}
	p.possible = len(p.mutants)
	return p, nil
}

func (p *program) close() { _ = os.RemoveAll(p.work) }

func (p *program) rel(path string) string {
	if r, err := filepath.Rel(p.here, path); err == nil {
		return filepath.ToSlash(r)
	}
	return path
}

// build makes a test program with the changes, and returns its name and what the compiler said.
func (p *program) build(name string, changes []*mutant) (binary string, said []byte, err error) {
	replaced := map[string]string{filepath.Join(p.dir, "mutate_choice.go"): filepath.Join(p.work, "mutate_choice.go")}
	pkg := filepath.Base(p.dir)
	for path, source := range p.sources {
		if file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.PackageClauseOnly); err == nil {
			pkg = file.Name.Name
		}
		var edits []edit
		for _, m := range changes {
			if filepath.Join(p.here, m.file) == path {
				edits = append(edits, m.edits...)
			}
		}
		to := filepath.Join(p.work, name+filepath.Base(path))
		if err := os.WriteFile(to, apply(source, edits), 0o600); err != nil {
			return "", nil, err
		}
		replaced[path] = to
	}
	choice := fmt.Sprintf(choiceSource, pkg, p.possible)
	text, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	overlay := filepath.Join(p.work, name+"overlay.json")
	if err = errors.Join(err, os.WriteFile(filepath.Join(p.work, "mutate_choice.go"), []byte(choice), 0o600), os.WriteFile(overlay, text, 0o600)); err != nil {
		return "", nil, err
	}
	binary = filepath.Join(p.work, name+"test")
	said, err = exec.Command("go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", overlay, "-o", binary, p.name).CombinedOutput()
	return binary, said, err
}

// start builds the program of all changes but those that do not compile, and learns what each test reaches.
func (p *program) start(checks int, rough, short bool) error {
	at := regexp.MustCompile(`(?m)([^/\s:]+\.go):(\d+)`)
	for round := 0; ; round++ {
		chosen := slices.DeleteFunc(slices.Clone(p.mutants), func(m *mutant) bool { return m.plain })
		binary, said, err := p.build("all", chosen)
		if err == nil {
			p.binary = binary
			break
		}
		wrong := map[string]bool{}
		for _, match := range at.FindAllSubmatch(said, -1) {
			wrong[strings.TrimPrefix(string(match[1]), "all")+":"+string(match[2])] = true
		}
		before := len(p.mutants)
		p.mutants = slices.DeleteFunc(p.mutants, func(m *mutant) bool {
			return !m.plain && wrong[filepath.Base(m.file)+":"+strconv.Itoa(m.line)]
		})
		p.dropped += before - len(p.mutants)
		if before == len(p.mutants) || round == 9 {
			return fmt.Errorf("%s with all changes: %w\n%s", p.name, err, said)
		}
	}
	p.usual = []string{"-rapid.shrinktime=1ms", "-rapid.nofailfile"}
	p.quick = append([]string{"-rapid.checks=" + strconv.Itoa(checks)}, p.usual...)
	if exec.Command(p.binary, append([]string{"-test.list", "."}, p.quick...)...).Run() != nil {
		p.quick, p.usual = nil, nil // no test here uses rapid
	}
	if short {
		p.quick, p.usual = append(p.quick, "-test.short"), append(p.usual, "-test.short")
	}
	if rough {
		p.usual = nil
	}
	out, err := exec.Command(p.binary, "-test.list", ".").Output()
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		file := filepath.Join(p.work, "reach-"+name)
		who, takes := p.test(p.binary, []string{name}, p.quick, 10*time.Minute, "MUTATE_REACH="+file)
		if who != "" {
			fmt.Fprintf(os.Stderr, "%s: %s fails when the changes are built in, though none is made: left out\n", p.name, who)
			continue
		}
		t := test{name: name, takes: takes, reach: map[int]bool{}}
		reached, _ := os.ReadFile(file)
		for s := range strings.FieldsSeq(string(reached)) {
			id, _ := strconv.Atoi(s)
			t.reach[id] = true
		}
		p.tests = append(p.tests, t)
	}
	slices.SortFunc(p.tests, func(a, b test) int { return int(a.takes - b.takes) })
	return nil
}

// try runs the tests that reach a change, and returns who noticed it, and whether the package could be built.
func (p *program) try(m *mutant) (who string, compiled bool) {
	binary, env := p.binary, "MUTATE="+strconv.Itoa(m.id)
	if m.plain {
		var said []byte
		var err error
		if binary, said, err = p.build("one", []*mutant{m}); err != nil {
			return "", !bytes.Contains(said, []byte(".go:"))
		}
	}
	var fast, slow []test
	for _, t := range p.tests {
		switch reaches := m.plain || t.reach[m.id]; {
		case reaches && t.takes < 100*time.Millisecond:
			fast = append(fast, t)
		case reaches:
			slow = append(slow, t)
		}
	}
	slices.SortStableFunc(slow, func(a, b test) int { return p.noticed[b.name] - p.noticed[a.name] })
	most := time.Second
	var names []string
	for _, t := range fast {
		names, most = append(names, t.name), most+10*t.takes
	}
	for round, flags := range [][]string{p.quick, p.usual} {
		if round > 0 && flags == nil {
			break
		}
		if len(names) > 0 && who == "" {
			who, _ = p.test(binary, names, flags, most, env)
		}
		most *= 10 // as there are more cases in the second round
		for _, t := range slow {
			if who != "" {
				break
			}
			if who, _ = p.test(binary, []string{t.name}, flags, 50*t.takes+time.Second, env); who != "" {
				p.noticed[t.name]++
			}
		}
	}
	return who, true
}

// test runs some tests within some time of the processor, and returns one that failed, and the time that they took.
func (p *program) test(binary string, names, flags []string, most time.Duration, env ...string) (who string, takes time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), most+30*time.Second)
	defer cancel()
	limit := fmt.Sprintf(`ulimit -t %d && exec "$0" "$@"`, int(most.Seconds())+1)
	args := append([]string{"-c", limit, binary, "-test.failfast", "-test.run", "^(" + strings.Join(names, "|") + ")$"}, flags...)
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.dir, append(os.Environ(), env...), time.Second
	out, err := cmd.CombinedOutput()
	takes = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	failed := regexp.MustCompile(`--- FAIL: (\S+)`).FindSubmatch(out)
	switch {
	case err == nil:
		return "", takes
	case failed != nil:
		return " " + string(failed[1]), takes
	case takes >= most || ctx.Err() != nil:
		return " " + names[len(names)-1] + lateMark, takes
	}
	return " " + names[0], takes
}

// choiceSource is added to the package: what the changes call.
const choiceSource = `package %s

import (
	"cmp"
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutateNow   = func() int { if n, err := strconv.Atoi(os.Getenv("MUTATE")); err == nil { return n }; return -1 }()
	mutateReach = func() *os.File { f, _ := os.OpenFile(os.Getenv("MUTATE_REACH"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); return f }()
	mutateSeen  [%d]atomic.Bool
)

func mutateOn(n int) bool {
	if mutateReach != nil && !mutateSeen[n].Swap(true) {
		_, _ = mutateReach.WriteString(strconv.Itoa(n) + "\n")
	}
	return n == mutateNow
}

type mutateNumeric interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutateAnd(on, a bool, b func() bool) bool { if on { return a || b() }; return a && b() }
func mutateOr(on, a bool, b func() bool) bool { if on { return a && b() }; return a || b() }
func mutateNot(on, a bool) bool { return on == a }
func mutateLess[T cmp.Ordered](on bool, a, b T) bool { if on { return a <= b }; return a < b }
func mutateMore[T cmp.Ordered](on bool, a, b T) bool { if on { return a >= b }; return a > b }
func mutateAdd[T mutateNumeric](on bool, a, b T) T { if on { return a - b }; return a + b }
func mutateSub[T mutateNumeric](on bool, a, b T) T { if on { return a + b }; return a - b }
func mutateNumber[T mutateNumeric](on bool, a, b T) T { if on { return b }; return a }
func mutateMin[T cmp.Ordered](on bool, a T, more ...T) T { for _, b := range more { if on { a = max(a, b) } else { a = min(a, b) } }; return a }
func mutateMax[T cmp.Ordered](on bool, a T, more ...T) T { return mutateMin(!on, a, more...) }
`
