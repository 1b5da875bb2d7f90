// Package difftest holds what scrape reads of a page against expfmt and against Prometheus' own parser. It is a module
// of its own, with tests alone, so that scrape requires neither.
//
//	go test -run Mutated -pages 10000000 -seed 7
package difftest
