package waits_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"chokepoint/analysis/waits"
)

// usage builds a usage of one second from cells; resources get the hold of
// their cells, and a cause each by the word before the colon.
func usage(cells []waits.Cell, change func(map[string]*waits.Resource)) *waits.Usage {
	u := &waits.Usage{T: 1, Cells: cells, Resources: map[string]*waits.Resource{}}
	for _, c := range cells {
		for _, name := range append([]string{c.Waits}, c.Held...) {
			if name != "" && u.Resources[name] == nil {
				kind := name[:3]
				u.Resources[name] = &waits.Resource{Name: name, Capacity: 1, Cause: waits.Cause{Layer: kind, Cause: kind}, Held: u.HoldersOf(name).Total}
			}
		}
	}
	if change != nil {
		change(u.Resources)
	}
	return u
}

func cell(waitsFor string, seconds float64, held ...string) waits.Cell {
	return waits.Cell{Stage: "s", Waits: waitsFor, Held: held, Seconds: seconds}
}

func TestBlame(t *testing.T) {
	pool := func(c float64) func(map[string]*waits.Resource) {
		return func(r map[string]*waits.Resource) { r["pool"].Capacity = c }
	}
	processors := func(held, foreign float64) func(map[string]*waits.Resource) {
		return func(r map[string]*waits.Resource) {
			r["pool"].Capacity = 10
			r["cpu"].CPU, r["cpu"].Capacity, r["cpu"].Held, r["cpu"].Foreign = true, 2, held, foreign
		}
	}
	eight := []waits.Cell{cell("pool", 100), cell("", 2.4, "pool")}
	for i := range 8 { // each row: 0.95 s of hold, 0.95 s of waiting
		row := fmt.Sprintf("row%d", i)
		eight = append(eight, cell("", 0.95, "pool", row), cell(row, 0.95, "pool"))
	}
	eight[1].Seconds = 10 - 8*1.9 + 15.2 - 10 + 2.4 // the rest of the hold
	for _, c := range []struct {
		name   string
		cells  []waits.Cell
		change func(map[string]*waits.Resource)
		from   string
		want   map[string]float64
	}{
		{"the connections wait for one row: U' 0.2 against 1", []waits.Cell{cell("pool", 9), cell("row", 8, "pool"), cell("", 1, "pool", "row"), cell("", 1, "pool")}, pool(10), "pool", map[string]float64{"row": 1}},
		{"they wait for nothing", []waits.Cell{cell("pool", 9), cell("", 10, "pool")}, pool(10), "pool", map[string]float64{"pool": 1}},
		{"two rows, three quarters and a quarter", []waits.Cell{cell("pool", 9), cell("rowA", 6, "pool"), cell("rowB", 2, "pool"), cell("", 1, "pool", "rowA"), cell("", 1, "pool", "rowB")}, pool(10), "pool", map[string]float64{"rowA": 0.75, "rowB": 0.25}},
		{"they wait for a row 9 % of their hold only", []waits.Cell{cell("pool", 9), cell("row", 0.9, "pool"), cell("", 1, "pool", "row"), cell("", 8.1, "pool")}, pool(10), "pool", map[string]float64{"pool": 1}},
		{"eight rows, each 7 % of the hold, together half", eight, pool(16), "pool", map[string]float64{"row0": 0.125, "row7": 0.125}},
		{"the row is less in use than the pool", []waits.Cell{cell("pool", 9), cell("row", 2, "pool"), cell("", 0.5, "pool", "row"), cell("", 7.5, "pool")}, pool(10), "pool", map[string]float64{"pool": 1}},
		{"a collection of rows has no utilisation", []waits.Cell{cell("pool", 9), cell("row/*", 8, "pool"), cell("", 2, "pool", "row/*")}, func(r map[string]*waits.Resource) { r["pool"].Capacity, r["row/*"].Opaque = 10, true }, "pool", map[string]float64{"pool": 1}},
		{"pool, row and processors in a row: all ends on what is deepest", []waits.Cell{cell("pool", 9), cell("row", 8.99, "pool"), cell("cpu", 0.9, "pool", "row"), cell("", 0.1, "pool", "row"), cell("", 0.01, "pool")}, processors(0.2, 1.8), "pool", map[string]float64{"cpu": 1}},
		{"holders wait half their hold for processors that others use", []waits.Cell{cell("pool", 9), cell("cpu", 5, "pool"), cell("", 5, "pool")}, processors(0.2, 1.8), "pool", map[string]float64{"pool": 1}},
		{"they wait four fifths of it", []waits.Cell{cell("pool", 9), cell("cpu", 8, "pool"), cell("", 2, "pool")}, processors(0.2, 1.8), "pool", map[string]float64{"cpu": 1}},
		{"they wait half of it for processors that we use up", []waits.Cell{cell("pool", 9), cell("cpu", 5, "pool"), cell("", 5, "pool")}, processors(1.9, 0.1), "pool", map[string]float64{"cpu": 1}},
		{"our own use is 70 %", []waits.Cell{cell("pool", 9), cell("cpu", 5, "pool"), cell("", 5, "pool")}, processors(1.4, 0.6), "pool", map[string]float64{"pool": 1}},
		{"processors pass no blame on", []waits.Cell{cell("cpu", 3), cell("pool", 9), cell("", 10, "pool")}, processors(1.9, 0), "cpu", map[string]float64{"cpu": 1}},
	} {
		ends := waits.NewBlame(usage(c.cells, c.change)).Ends[c.from]
		for r, want := range c.want {
			if math.Abs(ends[r]-want) > 1e-9 {
				t.Errorf("%s: %v, want %v", c.name, ends, c.want)
				break
			}
		}
	}
}

func TestNetUtilisation(t *testing.T) {
	// Held for 10 of 10 resource-seconds, of which 8 are waiting for the row.
	u := usage([]waits.Cell{cell("row", 8, "pool"), cell("", 2, "pool"), cell("pool", 1, "pool")}, func(r map[string]*waits.Resource) { r["pool"].Capacity = 11 })
	b := waits.NewBlame(u)
	if got := b.Net["pool"]; math.Abs(got-3.0/11) > 1e-9 { // waiting for itself is holding
		t.Errorf("U' is %v, want 3/11", got)
	}
	if h := u.HoldersOf("pool"); h.Self != 1 || h.Total != 11 {
		t.Errorf("holders %+v", h)
	}
}

// TestBlameMovesAll: whatever the usage, blame ends, and each second of waiting
// ends on exactly one resource.
func TestBlameMovesAll(t *testing.T) {
	names := []string{"pool", "rowA", "rowB", "cpu", "lock"}
	rapid.Check(t, func(t *rapid.T) {
		var cells []waits.Cell
		for range rapid.IntRange(1, 20).Draw(t, "cells") {
			var held []string
			for _, n := range names {
				if rapid.Bool().Draw(t, "holds "+n) && n != "cpu" {
					held = append(held, n)
				}
			}
			waitsFor := rapid.SampledFrom(append([]string{""}, names...)).Draw(t, "waits")
			cells = append(cells, cell(waitsFor, rapid.Float64Range(0, 1).Draw(t, "s"), held...))
		}
		b := waits.NewBlame(usage(cells, func(r map[string]*waits.Resource) {
			if c := r["cpu"]; c != nil {
				c.CPU, c.Held = true, rapid.Float64Range(0, 1).Draw(t, "own")
			}
		}))
		for r, ends := range b.Ends {
			sum := 0.0
			for _, share := range ends {
				sum += share
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Fatalf("waiting for %s ends on %v", r, ends)
			}
		}
	})
}
