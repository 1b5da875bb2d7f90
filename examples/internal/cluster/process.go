package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// errExited says that a program ended before it was ready.
var errExited = errors.New("exited")

// patience is how long a program may take to end when asked, before it is killed: an API server waits for its clients.
const patience = time.Second

// A Program is a child process beside a cluster, as a controller that is a program of its own. Its output goes to a file
// in the folder of the cluster, under its name.
type Program struct {
	name string
	cmd  *exec.Cmd
	log  string        // the file of its output
	done chan struct{} // closed when it ended
	err  error         // of its end; read after done
}

// start starts a command; its output is appended to name.log in dir.
func start(name, dir string, command *exec.Cmd) (*Program, error) {
	p := &Program{name: name, cmd: command, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = out, out
	DieWithParent(p.cmd)
	started := make(chan error)
	go func() {
		// The child is to die with this process, but the kernel watches the thread that started it: keep it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		_ = out.Close() // the child has its own
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// DieWithParent lets no command outlive this process where that is killed, as childAttributes has it.
func DieWithParent(c *exec.Cmd) { c.SysProcAttr = childAttributes() }

// Done is closed when the program has ended.
func (p *Program) Done() <-chan struct{} { return p.done }

// Process describes the program.
func (p *Program) Process() Process {
	return Process{Name: p.name, PID: p.cmd.Process.Pid, Log: p.log}
}

// Stop asks the program to end, and kills it after a second. It may be called more than once, and on none.
func (p *Program) Stop() {
	if p == nil {
		return
	}
	if p.cmd.Process.Signal(syscall.SIGTERM) != nil {
		p.kill()
		return
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
		p.kill()
	}
}

func (p *Program) kill() {
	_ = p.cmd.Process.Kill() // an error says that it is gone
	<-p.done
}

// Ready polls until check returns nil. It fails when the program ends or the context does, with the end of the log.
func (p *Program) Ready(ctx context.Context, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.done:
			return false, exited(p.err)
		default:
		}
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w; %s ends with\n%s", p.name, errors.Join(err, last), p.log, tail(p.log, 30))
	}
	return nil
}

// exited is [errExited] with how.
func exited(how error) error {
	if how == nil {
		return errExited // with status 0
	}
	return fmt.Errorf("%w: %w", errExited, how)
}

// tail returns the last lines of a file, as far as it can be read.
func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimRight(text, "\n")
	cut := len(text)
	for ; lines > 0 && cut >= 0; lines-- {
		cut = bytes.LastIndexByte(text[:cut], '\n')
	}
	return string(text[cut+1:])
}
