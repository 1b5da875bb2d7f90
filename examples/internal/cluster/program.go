package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// A Program is a child process beside a cluster, as a controller that is a program of its own. Its output is in the
// folder of the cluster, under its name.
type Program struct{ process *process }

// StartProgram starts the program at path with exactly the given environment. [Cluster.Stop] does not end it: stop it
// before. On Linux it does not outlive this process.
func (c *Cluster) StartProgram(name, path string, environment []string, args ...string) (*Program, error) {
	command := exec.Command(path, args...)
	command.Env = append([]string{}, environment...) // nil would be that of this process
	p, err := startCommand(name, c.dir, command)
	if err != nil {
		return nil, err
	}
	return &Program{process: p}, nil
}

// Ready polls until check returns nil. It fails when the program ends or the context does, with the end of the log.
func (p *Program) Ready(ctx context.Context, check func(context.Context) error) error {
	return p.process.ready(ctx, check)
}

// Stop asks the program to end, and kills it after a second. It may be called more than once.
func (p *Program) Stop() { p.process.stop() }

// Done is closed when the program has ended.
func (p *Program) Done() <-chan struct{} { return p.process.done }

// Process describes the program.
func (p *Program) Process() Process {
	return Process{Name: p.process.name, PID: p.process.cmd.Process.Pid, Log: p.process.log}
}

// LogTail returns the last lines of the log, for people.
func (p Process) LogTail(lines int) string { return tail(p.Log, lines) }

// FreePort finds a port on 127.0.0.1 where nothing listens, and where no outgoing connection will begin.
func FreePort() (int, error) { return freePort() }

// WriteCertificates writes tls.crt and tls.key into an existing folder, for one who is server and client as localhost
// and 127.0.0.1, and ca.crt, the authority that signed it and the API server's certificate.
func (c *Cluster) WriteCertificates(dir string) error {
	cert, key, err := c.clients.peer()
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"ca.crt": c.clients.pem, "tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
