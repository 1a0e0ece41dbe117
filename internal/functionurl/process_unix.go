//go:build unix

package functionurl

import (
	"os"
	"syscall"
)

const canFreeze = true

// process is a started one and its group. A signal to one that has ended does nothing.
type process struct{ *os.Process }

func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.Pid, s) }

func (p *process) kill()      { p.signal(syscall.SIGKILL) }
func (p *process) terminate() { p.signal(syscall.SIGTERM) }
func (p *process) freeze()    { p.signal(syscall.SIGSTOP) }
func (p *process) thaw()      { p.signal(syscall.SIGCONT) }
