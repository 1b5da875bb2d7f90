package watch

import "sync"

// How many objects' pods may be asked for shadows at once, beside those that are asked for rounds: of all, and of a namespace's.
const mostAsks, mostAsksOf = 32, 8

// Asks are those that are being asked for the shadows of a process. The zero value is ready to use, by several goroutines.
type Asks struct {
	mu  sync.Mutex
	all int
	of  map[string]int // by namespace
}

// begin reports whether there may be one more.
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
