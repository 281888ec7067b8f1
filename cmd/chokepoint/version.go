package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"chokepoint/collectors/record"
)

// build says which build this is, from what the Go command put into it.
func build() record.Tool {
	t := record.Tool{Version: "devel", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return t
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		t.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			t.Revision = s.Value
		}
	}
	return t
}

func versionCommand(_ context.Context, w world, args []string) error {
	if err := parse(flags(w, "version", "chokepoint version prints the version of this build."), args); err != nil {
		return err
	}
	t := build()
	fmt.Fprintf(w.stdout, "chokepoint %s %s %s\n", t.Version, t.Revision, t.Go)
	return nil
}
