//go:build !linux

package e2e

import "os/exec"

func dieWithParent(*exec.Cmd) {}

func pause(*exec.Cmd)  {}
func resume(*exec.Cmd) {}
