// Command typecheck reads packages and their tests as other platforms do, with the types of all that they import taken
// from source, and prints what does not compile there. To build them would compile each of a thousand packages once for
// each platform.
//
//	go run -modfile=go.tools.mod .ci/typecheck.go linux/386,windows/amd64 ./...
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: typecheck OS/ARCH[,OS/ARCH...] PACKAGE...")
		os.Exit(2)
	}
	failed := false
	for _, platform := range strings.Split(os.Args[1], ",") {
		read, wrong, err := check(platform, os.Args[2:])
		if err != nil {
			fmt.Fprintf(os.Stderr, "typecheck: %s: %v\n", platform, err)
			os.Exit(1)
		}
		for _, w := range wrong {
			fmt.Printf("%s: %v\n", platform, w)
		}
		fmt.Printf("%s: %d packages\n", platform, read)
		failed = failed || len(wrong) > 0
	}
	if failed {
		os.Exit(1)
	}
}

// check returns how many packages the patterns name, and what is wrong with them, or with what they import.
func check(platform string, patterns []string) (int, []packages.Error, error) {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return 0, nil, fmt.Errorf("a platform is OS/ARCH")
	}
	config := packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedTypesSizes | packages.NeedModule,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		Tests: true,
	}
	loaded, err := packages.Load(&config, patterns...)
	if err != nil {
		return 0, nil, err
	}
	if len(loaded) == 0 {
		return 0, nil, fmt.Errorf("no packages match %v", patterns)
	}
	var wrong []packages.Error
	packages.Visit(loaded, nil, func(p *packages.Package) { wrong = append(wrong, p.Errors...) })
	return len(loaded), wrong, nil
}
