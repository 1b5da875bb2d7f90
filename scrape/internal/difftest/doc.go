// Package difftest compares what scrape reads from a page with expfmt and with Prometheus' own parser. It is a module of its
// own, which has only tests, so that scrape requires neither.
//
//	go test -run Mutated -pages 10000000 -seed 7
package difftest
