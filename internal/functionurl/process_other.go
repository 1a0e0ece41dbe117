//go:build !unix

package functionurl

import (
	"os"
	"os/exec"
)

const canFreeze = false

// process is a started one. A signal to one that has ended does nothing.
type process struct{ *os.Process }

func prepare(*exec.Cmd) {}

func (p *process) kill()      { _ = p.Process.Kill() }
func (p *process) terminate() { _ = p.Process.Kill() }
func (p *process) freeze()    {}
func (p *process) thaw()      {}
