package waits_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"chokepoint/analysis/waits"
)

// resource makes one of a usage by hand; its cause is the word before the
// colon.
func resource(name string, capacity, held float64) *waits.Resource {
	kind := name
	for i := range name {
		if name[i] == ':' {
			kind = name[:i]
			break
		}
	}
	return &waits.Resource{Name: name, Capacity: capacity, Held: held, Cause: waits.Cause{Layer: kind, Cause: kind}}
}

func resources(all ...*waits.Resource) map[string]*waits.Resource {
	out := map[string]*waits.Resource{}
	for _, r := range all {
		out[r.Name] = r
	}
	return out
}

func processors(capacity, own, foreign float64) *waits.Resource {
	r := resource("cpu", capacity, own)
	r.CPU, r.Foreign = true, foreign
	return r
}

func opaque(r *waits.Resource) *waits.Resource {
	r.Opaque = true
	return r
}

// TestMoves: usages of 10 s with answers by hand. U is hold / (capacity x 10).
func TestMoves(t *testing.T) {
	const all = 1.0
	for _, c := range []struct {
		name      string
		cells     []waits.Cell
		resources map[string]*waits.Resource
		net       map[string]float64
		ends      map[string]map[string]float64
	}{
		{
			// Ten connections, held for 100 s: 88 wait for the row, 10 hold it.
			// U' of the pool is 1 x (1 - 0.88), of the row 10 / 10.
			name:      "connections wait for one row",
			cells:     []waits.Cell{cell("pool", 400), cell("row:1", 88, "pool"), cell("", 10, "pool", "row:1"), cell("", 2, "pool")},
			resources: resources(resource("pool", 10, 100), resource("row:1", 1, 10)),
			net:       map[string]float64{"pool": 0.12, "row:1": 1},
			ends:      map[string]map[string]float64{"pool": {"row:1": all}, "row:1": {"row:1": all}},
		},
		{
			// The same waiting for two rows, each held for half the time.
			// U' of the pool is 1 x (1 - 0.88), of a row 5 / 10.
			name: "two rows tie",
			cells: []waits.Cell{cell("pool", 400), cell("row:1", 44, "pool"), cell("row:2", 44, "pool"),
				cell("", 5, "pool", "row:1"), cell("", 5, "pool", "row:2"), cell("", 2, "pool")},
			resources: resources(resource("pool", 10, 100), resource("row:1", 1, 5), resource("row:2", 1, 5)),
			net:       map[string]float64{"pool": 0.12, "row:1": 0.5, "row:2": 0.5},
			ends:      map[string]map[string]float64{"pool": {"row:1": 0.5, "row:2": 0.5}, "row:1": {"row:1": all}, "row:2": {"row:2": all}},
		},
		{
			// 10 s of 100 are a tenth: enough. U' of the pool is 0.9.
			name:      "they wait a tenth of their hold",
			cells:     []waits.Cell{cell("pool", 400), cell("row:1", 10, "pool"), cell("", 10, "pool", "row:1"), cell("", 80, "pool")},
			resources: resources(resource("pool", 10, 100), resource("row:1", 1, 10)),
			net:       map[string]float64{"pool": 0.9, "row:1": 1},
			ends:      map[string]map[string]float64{"pool": {"row:1": all}, "row:1": {"row:1": all}},
		},
		{
			// 9.9 of 100: too little.
			name:      "they wait a little less",
			cells:     []waits.Cell{cell("pool", 400), cell("row:1", 9.9, "pool"), cell("", 10, "pool", "row:1"), cell("", 80.1, "pool")},
			resources: resources(resource("pool", 10, 100), resource("row:1", 1, 10)),
			net:       map[string]float64{"pool": 0.901, "row:1": 1},
			ends:      map[string]map[string]float64{"pool": {"pool": all}, "row:1": {"row:1": all}},
		},
		{
			// Slots wait for connections, these for the row: U' 0.12, 0.2, 1. Of
			// the slots' 100 s 80 wait for the pool and 8 for the row; of the
			// connections' 20 s 16 wait for the row. All of it ends there.
			name: "slot, pool and row in a row",
			cells: []waits.Cell{cell("slot", 50), cell("pool", 80, "slot"), cell("row:1", 8, "slot", "pool"), cell("row:1", 8, "pool"),
				cell("", 4, "slot", "pool", "row:1"), cell("", 6, "row:1"), cell("", 8, "slot")},
			resources: resources(resource("slot", 10, 100), resource("pool", 2, 20), resource("row:1", 1, 10)),
			net:       map[string]float64{"slot": 0.12, "pool": 0.2, "row:1": 1},
			ends:      map[string]map[string]float64{"slot": {"row:1": all}, "pool": {"row:1": all}, "row:1": {"row:1": all}},
		},
		{
			// The slots' holders wait for two things: 60 s for connections, which
			// wait for nothing, and 20 s for an application lock. 3 to 1.
			name: "a fork",
			cells: []waits.Cell{cell("slot", 50), cell("pool", 60, "slot"), cell("applock:k", 20, "slot"),
				cell("", 10, "slot", "pool"), cell("", 9, "slot", "applock:k"), cell("", 1, "slot")},
			resources: resources(resource("slot", 10, 100), resource("pool", 1, 10), resource("applock:k", 1, 9)),
			net:       map[string]float64{"slot": 0.2, "pool": 1, "applock:k": 0.9},
			ends:      map[string]map[string]float64{"slot": {"pool": 0.75, "applock:k": 0.25}, "pool": {"pool": all}, "applock:k": {"applock:k": all}},
		},
		{
			// Rows without a name: their U is 0, nothing moves there, and what
			// waits for them stays where it is.
			name:      "an opaque row keeps its waiting",
			cells:     []waits.Cell{cell("pool", 400), cell("row:*", 80, "pool"), cell("", 20, "pool", "row:*")},
			resources: resources(resource("pool", 10, 100), opaque(resource("row:*", 1, 20))),
			net:       map[string]float64{"pool": 0.2, "row:*": 0},
			ends:      map[string]map[string]float64{"pool": {"pool": all}, "row:*": {"row:*": all}},
		},
		{
			// Half the named and half the unnamed rows: the cause is waited for
			// enough in sum, and moves to the one that has a utilisation.
			name: "one row has a name, the others have none",
			cells: []waits.Cell{cell("pool", 400), cell("row:1", 9, "pool"), cell("row:*", 9, "pool"),
				cell("", 10, "pool", "row:1"), cell("", 72, "pool", "row:*")},
			resources: resources(resource("pool", 20, 100), resource("row:1", 1, 10), opaque(resource("row:*", 1, 72))),
			net:       map[string]float64{"pool": 0.5 * 0.82, "row:1": 1, "row:*": 0},
			ends:      map[string]map[string]float64{"pool": {"row:1": all}, "row:1": {"row:1": all}, "row:*": {"row:*": all}},
		},
		{
			// Nobody says what the row is: it is no resource, and its waiting stays.
			name:      "waiting for what is no resource",
			cells:     []waits.Cell{cell("pool", 400), cell("row:1", 80, "pool"), cell("", 20, "pool")},
			resources: resources(resource("pool", 10, 100)),
			net:       map[string]float64{"pool": 0.2},
			ends:      map[string]map[string]float64{"pool": {"pool": all}, "row:1": {"row:1": all}},
		},
		{
			// We use 15.9 of 20 processor-seconds, under 0.8.
			name:      "our own use of the processors is 79.5 %",
			cells:     []waits.Cell{cell("pool", 400), cell("cpu", 50, "pool"), cell("", 50, "pool")},
			resources: resources(resource("pool", 10, 100), processors(2, 15.9, 4.1)),
			net:       map[string]float64{"pool": 0.5, "cpu": 1},
			ends:      map[string]map[string]float64{"pool": {"pool": all}, "cpu": {"cpu": all}},
		},
		{
			// 16 of 20: our use alone is 0.8, above the pool's 0.5.
			name:      "it is 80 %",
			cells:     []waits.Cell{cell("pool", 400), cell("cpu", 50, "pool"), cell("", 50, "pool")},
			resources: resources(resource("pool", 10, 100), processors(2, 16, 4)),
			net:       map[string]float64{"pool": 0.5, "cpu": 1},
			ends:      map[string]map[string]float64{"pool": {"cpu": all}, "cpu": {"cpu": all}},
		},
		{
			// The others use them up, and the holders wait 75 of 100 s.
			name:      "holders that are starved: the use of others counts",
			cells:     []waits.Cell{cell("pool", 400), cell("cpu", 75, "pool"), cell("", 25, "pool")},
			resources: resources(resource("pool", 10, 100), processors(2, 1, 19)),
			net:       map[string]float64{"pool": 0.25, "cpu": 1},
			ends:      map[string]map[string]float64{"pool": {"cpu": all}, "cpu": {"cpu": all}},
		},
		{
			name:      "74 of 100 s are too little for that",
			cells:     []waits.Cell{cell("pool", 400), cell("cpu", 74, "pool"), cell("", 26, "pool")},
			resources: resources(resource("pool", 10, 100), processors(2, 1, 19)),
			net:       map[string]float64{"pool": 0.26, "cpu": 1},
			ends:      map[string]map[string]float64{"pool": {"pool": all}, "cpu": {"cpu": all}},
		},
		{
			// The cause is waited for, but all of it for rows without a name: no
			// second of it leads to the row that has one.
			name:      "no time at all waited for the deeper one",
			cells:     []waits.Cell{cell("pool", 400), cell("row:*", 80, "pool"), cell("row:1", 0, "pool"), cell("", 20, "pool")},
			resources: resources(resource("pool", 10, 100), resource("row:1", 1, 10), opaque(resource("row:*", 1, 20))),
			net:       map[string]float64{"pool": 0.2, "row:1": 1, "row:*": 0},
			ends:      map[string]map[string]float64{"pool": {"pool": all}, "row:1": {"row:1": all}, "row:*": {"row:*": all}},
		},
		{
			// Of processors whose number is not known there is no utilisation.
			name:      "processors of unknown number",
			cells:     []waits.Cell{cell("pool", 400), cell("cpu", 50, "pool"), cell("", 50, "pool")},
			resources: resources(resource("pool", 10, 100), processors(0, 16, 4)),
			net:       map[string]float64{"pool": 0.5, "cpu": 0},
			ends:      map[string]map[string]float64{"pool": {"pool": all}, "cpu": {"cpu": all}},
		},
		{
			// Holding a connection while waiting for one is holding: U' is 1.
			name:      "a connection in a connection",
			cells:     []waits.Cell{cell("pool", 400), cell("pool", 50, "pool"), cell("", 50, "pool")},
			resources: resources(resource("pool", 10, 100)),
			net:       map[string]float64{"pool": 1},
			ends:      map[string]map[string]float64{"pool": {"pool": all}},
		},
		{
			name:      "nobody waits",
			cells:     []waits.Cell{cell("", 50, "pool")},
			resources: resources(resource("pool", 10, 50)),
			net:       map[string]float64{"pool": 0.5},
			ends:      map[string]map[string]float64{},
		},
	} {
		b := waits.NewBlame(&waits.Usage{T: 10, Cells: c.cells, Resources: c.resources})
		near := cmpopts.EquateApprox(0, 1e-9)
		if d := cmp.Diff(c.net, b.Net, near); d != "" {
			t.Errorf("%s: U': %s", c.name, d)
		}
		if d := cmp.Diff(c.ends, b.Ends, near); d != "" {
			t.Errorf("%s: ends: %s", c.name, d)
		}
	}
}

// TestEightRows: none of the eight is waited for a tenth of the hold (each
// 4.9 of 100 s), but together they are 39.2 s; U' of the pool is 0.608, each
// row is held for 9 of 10 s.
func TestEightRows(t *testing.T) {
	build := func(each float64, cause func(i int) string) *waits.Usage {
		u := &waits.Usage{T: 10, Cells: []waits.Cell{cell("pool", 400), cell("", 100-8*(each+9), "pool")}, Resources: resources(resource("pool", 10, 100))}
		for i := range 8 {
			r := resource(cause(i)+":"+fmt.Sprint(i), 1, 9)
			u.Resources[r.Name] = r
			u.Cells = append(u.Cells, cell(r.Name, each, "pool"), cell("", 9, "pool", r.Name))
		}
		return u
	}
	row := func(int) string { return "row" }
	if b := waits.NewBlame(build(3.4, row)); math.Abs(b.Net["pool"]-0.728) > 1e-9 { // 27.2 of 100 s wait
		t.Errorf("U' of the pool is %v, want 0.728", b.Net["pool"])
	} else {
		for i := range 8 {
			if got := b.Ends["pool"][fmt.Sprint("row:", i)]; math.Abs(got-0.125) > 1e-9 {
				t.Errorf("on row %d ends %v of the waiting, want an eighth", i, got)
			}
		}
	}
	// 8 x 1.2 are 9.6 s: too little in sum.
	if b := waits.NewBlame(build(1.2, row)); math.Abs(b.Ends["pool"]["pool"]-1) > 1e-9 {
		t.Errorf("9.6 of 100 s: %v", b.Ends["pool"])
	}
	// Eight causes of 3.4 s each do not add up.
	if b := waits.NewBlame(build(3.4, func(i int) string { return fmt.Sprint("kind", i) })); math.Abs(b.Ends["pool"]["pool"]-1) > 1e-9 {
		t.Errorf("eight causes: %v", b.Ends["pool"])
	}
}

func TestUtilisation(t *testing.T) {
	for _, c := range []struct {
		name string
		t    float64
		r    waits.Resource
		want float64
	}{
		{"held for 5 of 10 s", 10, waits.Resource{Capacity: 1, Held: 5}, 0.5},
		{"of four, 5 of 40 s", 10, waits.Resource{Capacity: 4, Held: 5}, 0.125},
		{"and by others for 15", 10, waits.Resource{Capacity: 4, Held: 5, Foreign: 15}, 0.5},
		{"measured a little over the top", 10, waits.Resource{Capacity: 1, Held: 10.2}, 1},
		{"a collection", 10, waits.Resource{Capacity: 1, Held: 5, Opaque: true}, 0},
		{"of no known capacity", 10, waits.Resource{Held: 5}, 0},
		{"in no time", 0, waits.Resource{Capacity: 1, Held: 5}, 0},
	} {
		if got := (&waits.Usage{T: c.t}).Utilisation(&c.r); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestSums(t *testing.T) {
	u := &waits.Usage{T: 1, Cells: []waits.Cell{
		{Stage: "pool_wait", Waits: "pool", Seconds: 4},
		{Stage: "row_lock", Waits: "row:1", Held: []string{"pool"}, Seconds: 3},
		{Stage: "db_exec", Held: []string{"pool", "row:1"}, Seconds: 2},
		{Stage: "pool_wait", Waits: "pool", Held: []string{"pool"}, Seconds: 1},
		{Stage: "app", Seconds: 5},
	}}
	if got := u.Seconds(); got != 15 {
		t.Errorf("%v s of operations, want 15", got)
	}
	if d := cmp.Diff(map[string]float64{"pool": 5, "row:1": 3}, u.Waiting()); d != "" {
		t.Error(d)
	}
	want := waits.Holders{Total: 6, Self: 1, Waits: map[string]float64{"row:1": 3}, Stage: map[string]float64{"row_lock": 3, "db_exec": 2, "pool_wait": 1}}
	if d := cmp.Diff(want, u.HoldersOf("pool")); d != "" {
		t.Error(d)
	}
	if h := u.HoldersOf("nobody"); h.Total != 0 || len(h.Waits) != 0 {
		t.Errorf("holders of what nobody holds: %+v", h)
	}
}

func TestTable(t *testing.T) {
	for name, want := range map[string]string{
		"row:stock/1": "stock", "row:stock/*": "stock", "row:stock/a/b": "stock/a", "row:stock": "stock", "pool:mysql": "", "": "",
	} {
		if got := waits.Table(name); got != want {
			t.Errorf("%s is of table %q, want %q", name, got, want)
		}
	}
}

// usages are any usages whose cells and resources fit together.
func usages() *rapid.Generator[*waits.Usage] {
	return rapid.Custom(func(t *rapid.T) *waits.Usage {
		names := []string{"slot", "pool", "row:1", "row:2", "row:*", "cpu"}
		u := &waits.Usage{T: 10, Resources: map[string]*waits.Resource{}}
		for range rapid.IntRange(1, 20).Draw(t, "cells") {
			c := waits.Cell{Stage: "s", Waits: rapid.SampledFrom(append([]string{""}, names...)).Draw(t, "waits"), Seconds: float64(rapid.IntRange(0, 100).Draw(t, "s"))}
			for _, n := range names {
				if n != "cpu" && rapid.Bool().Draw(t, n) { // cells do not say who computes
					c.Held = append(c.Held, n)
				}
			}
			u.Cells = append(u.Cells, c)
		}
		for _, n := range names {
			if rapid.IntRange(0, 9).Draw(t, "unknown") == 0 {
				continue
			}
			r := resource(n, float64(rapid.IntRange(0, 10).Draw(t, "capacity")), u.HoldersOf(n).Total)
			r.Foreign = float64(rapid.IntRange(0, 20).Draw(t, "foreign"))
			if n == "cpu" {
				r.CPU, r.Capacity, r.Held = true, 2, float64(rapid.IntRange(0, 25).Draw(t, "own"))
			}
			r.Opaque = n == "row:*"
			u.Resources[n] = r
		}
		return u
	})
}

// TestBlameLaws: each second of waiting ends on exactly one resource, which is
// as deep as the one it came from or deeper; and blame does not hang on the
// order of the cells, nor on the unit of time.
func TestBlameLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := usages().Draw(t, "usage")
		b := waits.NewBlame(u)
		for r := range u.Waiting() {
			if b.Ends[r] == nil {
				t.Fatalf("waiting for %s ends nowhere", r)
			}
		}
		for r, ends := range b.Ends {
			sum := 0.0
			for end, share := range ends {
				sum += share
				if share < 0 || math.IsNaN(share) {
					t.Fatalf("%v of the waiting for %s ends on %s", share, r, end)
				}
				// Processors count by our own use or all of it, both at most U'.
				if end != r && b.Net[end] <= b.Net[r] {
					t.Fatalf("from %s with U' %v to %s with %v", r, b.Net[r], end, b.Net[end])
				}
				if end != r && u.Resources[end] == nil {
					t.Fatalf("from %s to %s, which is no resource", r, end)
				}
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Fatalf("waiting for %s ends on %v", r, ends)
			}
		}
		for r, v := range b.Net {
			if v < 0 || v > b.Utilisation[r]+1e-12 || b.Utilisation[r] > 1 {
				t.Fatalf("%s: U %v, U' %v", r, b.Utilisation[r], v)
			}
		}

		near := cmpopts.EquateApprox(0, 1e-9)
		backwards := &waits.Usage{T: u.T, Cells: slices.Clone(u.Cells), Resources: u.Resources}
		slices.Reverse(backwards.Cells)
		if d := cmp.Diff(b.Ends, waits.NewBlame(backwards).Ends, near); d != "" {
			t.Fatalf("with the cells in another order: %s", d)
		}
		scaled := &waits.Usage{T: 4 * u.T, Resources: map[string]*waits.Resource{}} // exact in binary
		for _, c := range u.Cells {
			c.Seconds *= 4
			scaled.Cells = append(scaled.Cells, c)
		}
		for name, r := range maps.All(u.Resources) {
			s := *r
			s.Held, s.Foreign = 4*r.Held, 4*r.Foreign
			scaled.Resources[name] = &s
		}
		if d := cmp.Diff(b.Ends, waits.NewBlame(scaled).Ends, near); d != "" {
			t.Fatalf("in quarters of a second: %s", d)
		}
	})
}
