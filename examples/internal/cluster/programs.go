package cluster

import (
	"fmt"
	"sync"
)

// Programs are the programs that run, by name. The zero value has none. Its methods may be called from several goroutines.
type Programs struct {
	mu      sync.Mutex
	running map[string]*Program
}

// Start starts a program of a name, unless there is one.
func (p *Programs) Start(name string, start func() (*Program, error)) (*Program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[name] != nil {
		return nil, fmt.Errorf("%s runs already", name)
	}
	program, err := start()
	if err != nil {
		return nil, err
	}
	if p.running == nil {
		p.running = make(map[string]*Program)
	}
	p.running[name] = program
	return program, nil
}

// Stop stops the program of a name, if there is one.
func (p *Programs) Stop(name string) {
	p.mu.Lock()
	program := p.running[name]
	delete(p.running, name)
	p.mu.Unlock()
	program.Stop()
}

// Of returns those of the names that run, in the same order.
func (p *Programs) Of(names ...string) []Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Process
	for _, name := range names {
		if program := p.running[name]; program != nil {
			all = append(all, program.Process())
		}
	}
	return all
}
