package cluster

import "syscall"

// childAttributes let a child die with this process, and keep an interrupt at the terminal from it: this process stops
// the children in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
