package e2e

import (
	"os/exec"
	"syscall"
)

// pause stops a program where it is, as a machine that hangs would, and resume lets it go on.
func pause(c *exec.Cmd)  { _ = c.Process.Signal(syscall.SIGSTOP) }
func resume(c *exec.Cmd) { _ = c.Process.Signal(syscall.SIGCONT) }
