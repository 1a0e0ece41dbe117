package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// bar is one promise: a figure and the most it may be; 0 promises nothing.
type bar struct {
	name string
	base string // what it is measured against, for the reader
	own  string
	got  float64
	most float64
	unit string
}

func (b bar) ok() bool { return b.most == 0 || b.got <= b.most }

func (b bar) format(figure float64) string {
	return strings.TrimSpace(fmt.Sprintf("%.2f %s", figure, b.unit))
}

func tableOf(bars []bar) string {
	var t strings.Builder
	t.WriteString("| figure | against | switchboard | result | at most | |\n|---|---|---|---|---|---|\n")
	for _, b := range bars {
		verdict, most := "pass", b.format(b.most)
		switch {
		case b.most == 0:
			verdict, most = "", ""
		case !b.ok():
			verdict = "**FAIL**"
		}
		fmt.Fprintf(&t, "| %s | %s | %s | %s | %s | %s |\n", b.name, b.base, b.own, b.format(b.got), most, verdict)
	}
	return t.String()
}

const mark = "<!-- measured: `make bench-lambda` writes from here -->"

// writePage replaces what follows the mark.
func writePage(path, table string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, _, found := strings.Cut(string(text), mark)
	if !found {
		return fmt.Errorf("%s has no line %q", path, mark)
	}
	page := fmt.Sprintf("%s%s\n\nMeasured on %d cores, %s/%s, %s.\n\n%s", head, mark, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), table)
	return os.WriteFile(path, []byte(page), 0o644)
}
