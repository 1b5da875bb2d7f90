//go:build !linux

package cluster

import "syscall"

// childAttributes are those of any child: only Linux ends it with this process.
func childAttributes() *syscall.SysProcAttr { return nil }
