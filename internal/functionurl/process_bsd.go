//go:build unix && !linux

package functionurl

import (
	"os/exec"
	"syscall"
)

// prepare puts the process into a group of its own, so that signals reach what it starts.
// Nothing kills it here when this process dies by SIGKILL: it ends when its Runtime API is gone.
func prepare(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
