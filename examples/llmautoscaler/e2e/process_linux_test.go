package e2e

import (
	"os/exec"
	"syscall"
)

// dieWithParent lets no program outlive a test that was killed.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
