// Command fleet plays a fleet of conversations against simulated providers once for each way of
// routing, prints what came of it, and puts the result into docs/routing.md. The simulation is
// the package's test, where time is free: this runs it with -update.
package main

import (
	"fmt"
	"os"
	"os/exec"
)

func main() {
	cmd := exec.Command("go", "test", "-count=1", "-run=^TestFleet$", "-v", "switchboard/bench/fleet", "-update")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}
