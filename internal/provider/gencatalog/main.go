// Command gencatalog writes the extract of charm.land/catwalk that the provider package
// embeds. Run it by go generate ./internal/provider.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

const header = `# The vendors and models of charm.land/catwalk, written by gencatalog: do not edit, run
# go generate ./internal/provider. Fields are separated by tabs. A line that begins with a
# tab is a vendor: id, type, variable of its key, base URL. The lines below it are its
# models: id, then US dollars per million tokens of input, output, input read from the cache
# and input written to it, then tokens of context. What is empty is not known.
`

func main() {
	os.Exit(run(os.Args[1:], os.Stderr))
}

func run(args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("gencatalog", flag.ContinueOnError)
	flags.SetOutput(stderr)
	to := flags.String("o", "catalog.txt", "the file to write")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	text, err := extract(embedded.GetAll())
	if err == nil {
		err = os.WriteFile(*to, []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(stderr, "gencatalog:", err)
		return 1
	}
	return 0
}

func extract(vendors []catwalk.Provider) (string, error) {
	var b strings.Builder
	b.WriteString(header)
	for _, v := range vendors {
		at := v.APIEndpoint
		if strings.HasPrefix(at, "$") { // a variable that may replace the vendor's own
			at = ""
		}
		if err := line(&b, "\t", string(v.ID), string(v.Type), strings.TrimPrefix(v.APIKey, "$"), at); err != nil {
			return "", err
		}
		for _, m := range v.Models {
			// catwalk's "in cached" is a write to the cache, its "out cached" a read from
			// it, as its Anthropic entries show.
			err := line(&b, "", m.ID, usd(m.CostPer1MIn), usd(m.CostPer1MOut), usd(m.CostPer1MOutCached), usd(m.CostPer1MInCached), count(m.ContextWindow))
			if err != nil {
				return "", err
			}
		}
	}
	return b.String(), nil
}

// line leaves out the tabs at its end, which nothing follows. A vendor keeps one: its id is
// searched for with it.
func line(b *strings.Builder, mark, id string, fields ...string) error {
	for _, f := range append(fields, id) {
		if strings.ContainsAny(f, "\t\r\n") {
			return fmt.Errorf("%q cannot be written: it has a tab or the end of a line in it", f)
		}
	}
	if id == "" || strings.HasPrefix(id, "#") {
		return fmt.Errorf("%q cannot be a name: it would be no line, or a comment", id)
	}
	b.WriteString(strings.TrimRight(mark+id+"\t"+strings.Join(fields, "\t"), "\t"))
	if mark != "" && strings.Join(fields, "") == "" {
		b.WriteByte('\t')
	}
	b.WriteByte('\n')
	return nil
}

// usd rounds away what binary fractions add (0.09999999999999999 is 0.1). 0 is a price
// that catwalk does not know.
func usd(price float64) string {
	if !(price > 0) || price > 1e6 {
		return ""
	}
	nano := strconv.FormatInt(int64(math.Round(price*1e9)), 10)
	nano = strings.Repeat("0", max(0, 10-len(nano))) + nano
	whole, fraction := nano[:len(nano)-9], strings.TrimRight(nano[len(nano)-9:], "0")
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

func count(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
