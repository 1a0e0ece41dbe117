package functionurl

import (
	"os/exec"
	"syscall"
)

// prepare puts the process into a group of its own, so that signals reach what it starts, and
// has the kernel kill it when this process dies, however that happens.
func prepare(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
