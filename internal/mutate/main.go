// Command mutate measures tests: it changes one thing in a package at a time, runs the package's tests, and reports the
// changes that no test noticed.
//
//	go run ./internal/mutate -sample 40 -flags "-rapid.checks=30" ./realtime ./scaling
//
// Changed are comparisons, && and ||, + and -, whole numbers, booleans that are returned, negations, and statements, which
// are left out. Nothing is written to the source: go test gets an overlay. A change that does not compile does not count.
// It exits with 1 if more than -survivors of the changes survive.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A mutant is one change of one file.
type mutant struct {
	file     string
	from, to int // bytes
	line     int
	was, is  string
	rank     uint64
}

func main() {
	sample := flag.Int("sample", 0, "changes a package, drawn by -seed; 0 for all")
	seed := flag.Int("seed", 1, "of the draw")
	timeout := flag.Duration("timeout", 2*time.Minute, "of one run of the tests")
	flags := flag.String("flags", "", "flags for go test, separated by spaces")
	only := flag.String("file", "", "only files whose name contains this")
	most := flag.Int("survivors", 1<<30, "how many changes may survive")
	flag.Parse()
	survived := 0
	for _, pkg := range flag.Args() {
		n, err := run(pkg, *only, strings.Fields(*flags), *sample, *seed, *timeout)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		survived += n
	}
	if survived > *most {
		os.Exit(1)
	}
}

// run tries a package, and returns how many changes survived.
func run(pkg, only string, flags []string, sample, seed int, timeout time.Duration) (int, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}{{range .GoFiles}}\n{{.}}{{end}}", pkg).Output()
	if err != nil {
		return 0, fmt.Errorf("go list %s: %w", pkg, err)
	}
	names := strings.Split(strings.TrimSpace(string(out)), "\n")
	var all []mutant
	for _, name := range names[1:] {
		if strings.Contains(name, only) {
			found, err := mutants(filepath.Join(names[0], name), seed)
			if err != nil {
				return 0, err
			}
			all = append(all, found...)
		}
	}
	slices.SortFunc(all, func(a, b mutant) int { return cmp.Compare(a.rank, b.rank) })
	killed, survived := 0, 0
	for _, m := range all {
		if sample > 0 && killed+survived == sample {
			break
		}
		switch noticed, compiled, err := try(pkg, m, flags, timeout); {
		case err != nil:
			return 0, err
		case !compiled:
		case noticed:
			killed++
		default:
			survived++
			fmt.Printf("survived %s:%d: %q became %q\n", m.file, m.line, m.was, m.is)
		}
	}
	fmt.Printf("%s: %d of %d changes noticed (%d possible)\n", pkg, killed, killed+survived, len(all))
	return survived, nil
}

// mutants returns the changes that can be made to a file.
func mutants(file string, seed int) (all []mutant, err error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		return nil, err
	}
	add := func(from, to token.Pos, is string) {
		m := mutant{file: file, from: set.Position(from).Offset, to: set.Position(to).Offset, line: set.Position(from).Line, is: is}
		m.was = string(source[m.from:m.to])
		h := fnv.New64a()
		fmt.Fprint(h, seed, filepath.Base(file), m.line, m.was, is, m.from)
		m.rank = h.Sum64()
		all = append(all, m)
	}
	swaps := map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR || n.Tok == token.CONST
		case *ast.BinaryExpr:
			if to, ok := swaps[n.Op]; ok {
				add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to.String())
			}
		case *ast.BasicLit:
			if v, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
				add(n.Pos(), n.End(), strconv.Itoa(v+1))
			}
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				add(n.OpPos, n.OpPos+1, "")
			}
		case *ast.ExprStmt:
			add(n.Pos(), n.End(), "{}")
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				add(n.Pos(), n.End(), "")
			}
		case *ast.ReturnStmt:
			for _, r := range n.Results {
				if id, ok := r.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
					add(id.Pos(), id.End(), strconv.FormatBool(id.Name == "false"))
				}
			}
		}
		return true
	})
	return all, nil
}

// try runs the tests with a change, and reports whether one failed, and whether the package could be built.
func try(pkg string, m mutant, flags []string, timeout time.Duration) (noticed, compiled bool, err error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return false, false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	source, err := os.ReadFile(m.file)
	if err != nil {
		return false, false, err
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: changed}})
	if err == nil {
		err = os.WriteFile(changed, slices.Concat(source[:m.from], []byte(m.is), source[m.to:]), 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err != nil {
		return false, false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout+time.Minute)
	defer cancel()
	args := slices.Concat([]string{"test", "-overlay", overlay, "-vet=off", "-failfast", "-timeout", timeout.String(), pkg}, flags)
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")) {
		return false, false, nil
	}
	return err != nil, true, nil
}
