package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mayImport gives, for each folder, the folders of this module that its
// packages may import: the imports go one way. A folder stands for all below
// it, the longest match decides.
func mayImport() map[string][]string {
	return map[string][]string{
		"collectors/metric":     {},
		"collectors/record":     {"collectors/metric"},
		"collectors":            {"collectors/metric", "collectors/record"},
		"collectors/operations": {"collectors/metric", "collectors/record", "workloads"},
		"collectors/mysql":      {"collectors", "collectors/metric", "collectors/record"},
		"collectors/redis":      {"collectors", "collectors/metric", "collectors/record"},
		"collectors/profiler":   {},
		"collectors/pool":       {"collectors", "collectors/metric", "collectors/record"},
		"collectors/goruntime":  {"collectors", "collectors/metric", "collectors/record"},
		"collectors/host":       {"collectors", "collectors/metric", "collectors/record"},
		"workloads":             {},
		"workloads/sandbox":     {"workloads/sandbox"},
		"workloads/lock":        {"workloads"},
		"analysis":              {"analysis", "collectors/metric", "collectors/record"},
		"dashboards/report":     {"analysis", "collectors", "collectors/record"},
		"cmd/chokepoint":        {""},
	}
}

type goPackage struct {
	ImportPath string
	Imports    []string
	GoFiles    []string
	Dir        string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,GoFiles,Dir", "chokepoint/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	d := json.NewDecoder(strings.NewReader(string(out)))
	for d.More() {
		var p goPackage
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func TestImportsGoOneWay(t *testing.T) {
	rules := mayImport()
	for _, p := range packages(t) {
		folder := strings.TrimPrefix(p.ImportPath, "chokepoint/")
		rule := longest(rules, folder)
		if rule == "" {
			t.Errorf("%s: no rule says what it may import", folder)
		}
		for _, i := range p.Imports {
			target, ours := strings.CutPrefix(i, "chokepoint/")
			if ours && !slices.ContainsFunc(rules[rule], func(allowed string) bool { return within(target, allowed) }) {
				t.Errorf("%s imports %s; it may import %v", folder, target, rules[rule])
			}
		}
	}
}

// longest is the rule that names the folder or the nearest one above it.
func longest(rules map[string][]string, folder string) string {
	best := ""
	for r := range rules {
		if within(folder, r) && len(r) > len(best) {
			best = r
		}
	}
	return best
}

// within tells whether a folder is another or below it; sub-packages of
// collectors and workloads count as below only where the rule names them.
func within(folder, above string) bool {
	if above == "" || folder == above {
		return true
	}
	leaf := above == "collectors" || above == "workloads" // not all below them
	return !leaf && strings.HasPrefix(folder, above+"/")
}

// TestNames: the name of a package says what lives
// there.
func TestNames(t *testing.T) {
	for _, p := range packages(t) {
		name := p.ImportPath[strings.LastIndexByte(p.ImportPath, '/')+1:]
		if slices.Contains([]string{"util", "utils", "common", "helpers", "types", "models", "base", "shared"}, name) {
			t.Errorf("package %s: the name says nothing about what lives there", p.ImportPath)
		}
	}
}
