package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// A mutant is one change of one file.
type mutant struct {
	id     int
	file   string // from the directory where mutate runs
	line   int
	text   string // of that line
	change string // as in "&& became ||", and its number if the same can be made in equal lines before
	edits  []edit
	plain  bool // the edits make the change, not a choice of it: the program has this change alone
}

func (m *mutant) key() string { return m.file + ": " + m.text + "\n\t" + m.change }

func (m *mutant) rank(seed int) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, seed, m.key())
	return h.Sum64()
}

// An edit replaces a part of a file. At the same place ends come before beginnings, and beginnings before what is replaced.
type edit struct {
	from, to int
	kind     int // closing, opening, replacing
	order    int
	text     string
}

const (
	closing = iota
	opening
	replacing
)

// apply returns the source with the edits made. Those of inner expressions come later in edits than those of outer ones.
func apply(source []byte, edits []edit) []byte {
	for i := range edits {
		edits[i].order = i
		if edits[i].kind == closing {
			edits[i].order = -i
		}
	}
	slices.SortFunc(edits, func(a, b edit) int {
		return cmp.Or(a.from-b.from, a.kind-b.kind, a.order-b.order)
	})
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, source[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, source[at:]...)
}

// A finder finds the changes that can be made to a file.
type finder struct {
	set    *token.FileSet
	file   string
	source []byte
	info   *types.Info
	pkg    *types.Package
	names  map[string]string // of imported packages, by path
	next   int
	count  map[string]int
	all    []*mutant
}

func (f *finder) offset(p token.Pos) int { return f.set.Position(p).Offset }

func (f *finder) add(at token.Pos, change string, edits ...edit) *mutant {
	line := f.set.Position(at).Line
	text := strings.TrimSpace(strings.Split(string(f.source), "\n")[line-1])
	for i := range edits {
		edits[i].text = strings.ReplaceAll(edits[i].text, "ON", fmt.Sprintf("mutateOn(%d)", f.next))
	}
	m := &mutant{id: f.next, file: f.file, line: line, text: text, change: change, edits: edits}
	f.count[m.key()]++
	if n := f.count[m.key()]; n > 1 {
		m.change += fmt.Sprintf(" #%d", n)
	}
	f.next++
	f.all = append(f.all, m)
	return m
}

func (f *finder) open(at token.Pos, text string) edit {
	return edit{from: f.offset(at), to: f.offset(at), kind: opening, text: text}
}

func (f *finder) close(at token.Pos, text string) edit {
	return edit{from: f.offset(at), to: f.offset(at), kind: closing, text: text}
}

func (f *finder) replace(from, to token.Pos, text string) edit {
	return edit{from: f.offset(from), to: f.offset(to), kind: replacing, text: text}
}

// find adds the changes of a tree, outer expressions before inner ones.
func (f *finder) find(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		if n.Tok == token.CONST {
			ast.Inspect(n, f.constant)
		}
		return n.Tok == token.VAR
	case *ast.ArrayType:
		return false // a length is a constant; elements have nothing to change
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.BasicLit:
		f.number(n)
	case *ast.UnaryExpr:
		if lit, ok := n.X.(*ast.BasicLit); ok { // its type is said of the expression
			f.info.Types[lit] = f.info.Types[n]
		}
		if n.Op == token.NOT {
			f.add(n.Pos(), "! left out", f.replace(n.OpPos, n.OpPos+1, "mutateNot(ON, "), f.close(n.End(), ")"))
		}
	case *ast.CallExpr:
		f.extreme(n)
	case *ast.ReturnStmt:
		for _, r := range n.Results {
			if id, ok := r.(*ast.Ident); ok && (id.Name == "true" || id.Name == "false") {
				f.add(id.Pos(), id.Name+" became "+strconv.FormatBool(id.Name == "false"), f.replace(id.Pos(), id.End(), "("+id.Name+" != ON)"))
			}
		}
	}
	return true
}

func (f *finder) constant(n ast.Node) bool {
	if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.INT {
		if v, err := strconv.Atoi(lit.Value); err == nil {
			f.add(lit.Pos(), fmt.Sprintf("%d became %d", v, v+1), f.replace(lit.Pos(), lit.End(), strconv.Itoa(v+1))).plain = true
		}
	}
	return true
}

func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" {
					continue // it may be what ends a function
				}
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		default:
			continue
		}
		f.add(s.Pos(), "left out", f.open(s.Pos(), "if !ON {"), f.close(s.End(), "}"))
	}
}

func (f *finder) binary(n *ast.BinaryExpr) {
	swaps := map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
	}
	to, ok := swaps[n.Op]
	if !ok || f.info.Types[n].Value != nil {
		return
	}
	change := n.Op.String() + " became " + to.String()
	op := n.OpPos + token.Pos(len(n.Op.String()))
	call := func(name, comma, end string) {
		f.add(n.OpPos, change, f.open(n.Pos(), name+", "), f.replace(n.OpPos, op, comma), f.close(n.End(), end))
	}
	switch n.Op { //nolint:exhaustive // the others are not changed
	case token.EQL, token.NEQ:
		f.add(n.OpPos, change, f.open(n.Pos(), "(ON != ("), f.close(n.End(), "))"))
	case token.LAND:
		call("mutateAnd(ON", ", func() bool { return (", ")})")
	case token.LOR:
		call("mutateOr(ON", ", func() bool { return (", ")})")
	case token.LSS:
		call("mutateLess(ON", ",", ")")
	case token.LEQ:
		call("mutateLess(!ON", ",", ")")
	case token.GTR:
		call("mutateMore(ON", ",", ")")
	case token.GEQ:
		call("mutateMore(!ON", ",", ")")
	case token.ADD, token.SUB:
		if b, ok := f.info.TypeOf(n).Underlying().(*types.Basic); ok && b.Info()&types.IsNumeric != 0 {
			call(map[token.Token]string{token.ADD: "mutateAdd(ON", token.SUB: "mutateSub(ON"}[n.Op], ",", ")")
		}
	}
}

func (f *finder) number(n *ast.BasicLit) {
	v, err := strconv.Atoi(n.Value)
	t := f.info.TypeOf(n)
	if err != nil || n.Kind != token.INT || t == nil {
		return
	}
	name, known := types.TypeString(types.Default(t), func(p *types.Package) string {
		if p == f.pkg {
			return ""
		}
		return f.names[p.Path()]
	}), true
	if named, ok := t.(*types.Named); ok && named.Obj().Pkg() != f.pkg {
		known = f.names[named.Obj().Pkg().Path()] != ""
	}
	if known {
		f.add(n.Pos(), fmt.Sprintf("%d became %d", v, v+1), f.replace(n.Pos(), n.End(), fmt.Sprintf("mutateNumber[%s](ON, %d, %d)", name, v, v+1)))
	}
}

func (f *finder) extreme(n *ast.CallExpr) {
	id, ok := n.Fun.(*ast.Ident)
	if !ok || id.Name != "min" && id.Name != "max" || f.info.Types[n].Value != nil {
		return
	}
	if _, builtin := f.info.Uses[id].(*types.Builtin); builtin {
		other := map[string]string{"min": "max", "max": "min"}[id.Name]
		name := map[string]string{"min": "mutateMin", "max": "mutateMax"}[id.Name]
		f.add(n.Pos(), id.Name+" became "+other, f.replace(n.Pos(), n.Lparen+1, name+"(ON, "))
	}
}
