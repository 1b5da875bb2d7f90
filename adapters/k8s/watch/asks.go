package watch

import "sync"

// The maximum number of objects whose pods are scraped for shadows at once, not counting scrapes for rounds: in all
// namespaces, and in one.
const mostAsks, mostAsksOf = 32, 8

// Asks counts the objects whose pods are being scraped for the shadows of a process. The zero value is ready to use, and safe
// for concurrent use.
type Asks struct {
	mu  sync.Mutex
	all int
	of  map[string]int // by namespace
}

// begin counts one more object, unless the limits are reached; it reports whether it did.
func (a *Asks) begin(namespace string) bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all >= mostAsks || a.of[namespace] >= mostAsksOf {
		return false
	}
	if a.of == nil {
		a.of = make(map[string]int)
	}
	a.all++
	a.of[namespace]++
	return true
}

func (a *Asks) end(namespace string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all--
	if a.of[namespace]--; a.of[namespace] == 0 {
		delete(a.of, namespace)
	}
}
