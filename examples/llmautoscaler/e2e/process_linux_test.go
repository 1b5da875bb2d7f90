package e2e

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets no program outlive a test that was killed.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// pause stops a program where it is, as a machine that hangs would, and resume lets it go on.
func pause(c *exec.Cmd)  { _ = c.Process.Signal(syscall.SIGSTOP) }
func resume(c *exec.Cmd) { _ = c.Process.Signal(syscall.SIGCONT) }
