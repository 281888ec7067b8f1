package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected outputs")

// console is a block of the README: a command and what it prints.
type console struct{ command, output string }

// consoles finds the blocks that begin with "$ chokepoint".
func consoles(readme string) []console {
	var out []console
	for _, block := range strings.Split(readme, "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		command, output, _ := strings.Cut(block, "\n")
		out = append(out, console{strings.TrimPrefix(command, "$ "), output})
	}
	return out
}

// TestReadme runs each command that the README shows on the record that is
// checked in, and compares what it prints, errors included.
func TestReadme(t *testing.T) {
	const name = "../../README.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	blocks := consoles(readme)
	if len(blocks) == 0 {
		t.Fatal("the README shows no command")
	}
	for _, b := range blocks {
		var out bytes.Buffer
		getenv := func(key string) string { return map[string]string{"CHOKEPOINT_RUNS": "testdata/runs"}[key] }
		run(context.Background(), world{getenv, &out, &out}, strings.Fields(b.command)[1:])
		if got := lastLines(out.String(), b.output); got != b.output {
			if *update {
				readme = strings.Replace(readme, b.command+"\n"+b.output, b.command+"\n"+out.String(), 1)
				continue
			}
			t.Errorf("%s prints something else than the README says (go test ./cmd/chokepoint -run Readme -update): %s", b.command, cmp.Diff(b.output, got))
		}
	}
	if *update {
		if err := os.WriteFile(name, []byte(readme), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// lastLines lets the README leave out the beginning of an output, if it says so
// by "...".
func lastLines(got, want string) string {
	end, ok := strings.CutPrefix(want, "...\n")
	if ok && strings.HasSuffix(got, "\n"+end) {
		return want
	}
	return got
}
