// Command mutate measures tests: it changes one thing in a package at a time, runs the tests that reach it, and reports the
// changes that no test noticed.
//
//	go run ./internal/mutate ./realtime ./scaling
//
// Changed are comparisons, && and ||, + and -, min and max, whole numbers, booleans that are returned, negations, and
// statements, which are left out. Nothing is written to the source: go test gets an overlay. All changes of a package are
// built into one test program, where an environment variable chooses the one that is made; a change of a constant needs a
// program of its own. Each is tried with few cases of each property first, and if no test fails, with as many as usual.
// Limits are of the processor's time, and half a minute more for what waits. With -v all changes are printed; that output is
// what -again reads, to try only what survived.
//
// With -short and -rough it is quick where tests are long, as those of capacity; what survives that can be tried -again with all.
//
// Changes that make no difference are listed in equivalent.txt, each with its reason, and are not tried (but with -check,
// which fails for those that a test notices). It exits with 1 if more than -survivors of the changes survive, or if the
// list names what is not there. A change may take any memory: run it under a limit of it (ulimit -v).
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An options value is the command line.
type options struct {
	sample, seed int
	file         *regexp.Regexp
	check        bool
	verbose      bool
	checks       int
	rough        bool
	short        bool
	again        string
	equivalent   string
}

func main() {
	var o options
	flag.IntVar(&o.sample, "sample", 0, "changes a package, drawn by -seed; 0 for all")
	flag.IntVar(&o.seed, "seed", 1, "of the draw")
	file := flag.String("file", "", "only files whose name matches this regular expression")
	flag.BoolVar(&o.check, "check", false, "try only the changes that are listed as equivalent")
	flag.BoolVar(&o.verbose, "v", false, "print each change and who noticed it")
	flag.IntVar(&o.checks, "checks", 20, "cases of each property that are tried first")
	flag.BoolVar(&o.rough, "rough", false, "try no more cases than those")
	flag.BoolVar(&o.short, "short", false, "leave out what tests leave out with -short")
	flag.StringVar(&o.equivalent, "equivalent", "internal/mutate/equivalent.txt", "changes that make no difference")
	again := flag.String("again", "", "only the changes that survived by this output of an earlier run")
	most := flag.Int("survivors", 1<<30, "how many changes may survive")
	flag.Parse()
	known, err := readEquivalents(o.equivalent)
	if err == nil {
		o.file, err = regexp.Compile(*file)
	}
	if *again != "" && err == nil {
		var text []byte
		text, err = os.ReadFile(*again)
		o.again = string(text)
	}
	survived := 0
	for _, pkg := range flag.Args() {
		n := 0
		if err == nil {
			n, err = run(pkg, known, o)
		}
		survived += n
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if survived > *most {
		os.Exit(1)
	}
}

// run tries a package, and returns how many changes survived, or for -check how many were noticed.
func run(name string, known equivalents, o options) (int, error) {
	began := time.Now()
	p, err := load(name)
	if err != nil {
		return 0, err
	}
	defer p.close()
	if err := p.start(o.checks, o.rough, o.short); err != nil {
		return 0, err
	}
	unknown := known.missing(p)
	all := slices.Clone(p.mutants)
	slices.SortFunc(all, func(a, b *mutant) int { return cmp.Compare(a.rank(o.seed), b.rank(o.seed)) })
	noticed, equal, late := 0, 0, 0
	var left []*mutant
	for _, m := range all {
		if o.sample > 0 && noticed+equal+len(left) == o.sample {
			break
		}
		_, listed := known[m.key()]
		switch {
		case !o.file.MatchString(filepath.Base(m.file)), o.check && !listed,
			o.again != "" && !strings.Contains(o.again, m.key()+": survived"):
			continue
		case listed && !o.check:
			equal++
			continue
		}
		who, compiled := p.try(m)
		switch {
		case !compiled:
			continue
		case who == "":
			left = append(left, m)
		default:
			noticed++
			if strings.HasSuffix(who, lateMark) {
				late++
			}
		}
		if o.verbose || who == "" != o.check {
			fmt.Printf("%s:%d\n%s:%s\n", p.rel(m.file), m.line, m.key(), cmp.Or(who, " survived"))
		}
	}
	fmt.Printf("%s: %d possible, %d tried, %d noticed (%d by their time), %d equivalent, %d survived; %d do not build; %s\n", name,
		len(all), noticed+equal+len(left), noticed, late, equal, len(left), p.dropped, time.Since(began).Round(time.Second))
	if len(unknown) > 0 {
		return 0, fmt.Errorf("%s: not in the source:\n%s", o.equivalent, strings.Join(unknown, "\n"))
	}
	if o.check {
		return noticed, nil
	}
	return len(left), nil
}
