package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"
)

// What go generate would write is what stands there.
func TestFileIsUpToDate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.txt")
	var stderr bytes.Buffer
	if code := run([]string{"-o", path}, &stderr); code != 0 {
		t.Fatalf("run = %d, %s", code, &stderr)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../catalog.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("internal/provider/catalog.txt is not what charm.land/catwalk of go.mod says; run: go generate ./internal/provider")
	}
	if code := run([]string{"-o", t.TempDir()}, &stderr); code != 1 || !strings.Contains(stderr.String(), "gencatalog:") {
		t.Errorf("run into a directory = %d, %s, want 1 and a reason", code, &stderr)
	}
	if code := run([]string{"-nope"}, &stderr); code != 2 {
		t.Errorf("run with an unknown flag = %d, want 2", code)
	}
	text, err := extract(embedded.GetAll())
	if err != nil || text != string(want) {
		t.Errorf("extract = %d bytes, %v, want those of the file", len(text), err)
	}
}

func TestUSD(t *testing.T) {
	for price, want := range map[float64]string{
		0: "", -1: "", math.NaN(): "", math.Inf(1): "", 2e6: "",
		3: "3", 0.3: "0.3", 0.09999999999999999: "0.1", 1.25: "1.25", 0.000000001: "0.000000001", 100: "100", 18.75: "18.75",
	} {
		if got := usd(price); got != want {
			t.Errorf("usd(%v) = %q, want %q", price, got, want)
		}
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	for _, id := range []string{"a\tb", "a\nb", "# a", "", "\r"} {
		if text, err := extract([]catwalk.Provider{{ID: "v", Models: []catwalk.Model{{ID: id}}}}); err == nil {
			t.Errorf("extract of a model named %q = %q, want an error", id, text)
		}
	}
	if text, err := extract([]catwalk.Provider{{ID: "v", APIEndpoint: "$X", Models: []catwalk.Model{{ID: "@cf/m"}}}}); err != nil || !strings.HasSuffix(text, "\tv\t\n@cf/m\n") {
		t.Errorf("extract = %q, %v, want a vendor and a model without anything else", text, err)
	}
}
