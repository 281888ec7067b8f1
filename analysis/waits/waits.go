// Package waits moves waiting time to the resource that really causes it.
//
// A pool queue that exists only because ten connections wait for one row is a
// symptom: the waiting for the pool is blamed on the row. What resources their
// holders wait for while they hold them decides, see Blame.
package waits

import (
	"slices"
	"strings"
)

// Cause names what a resource's waiting means: a layer and a cause in it.
type Cause struct {
	Layer string `json:"layer"`
	Cause string `json:"cause"`
}

// Cell is the time that operations spent in one way.
type Cell struct {
	Stage   string   // budget stage
	Waits   string   // the resource waited for, "" if this is work
	Held    []string // resources held meanwhile
	Seconds float64
}

// Resource is something that is held and waited for.
type Resource struct {
	Name     string
	Cause    Cause
	Capacity float64
	// Held is the time for which our operations hold it, in resource-seconds.
	Held float64
	// Foreign is the time for which others use it.
	Foreign float64
	// CPU marks the processors, whose use by others counts only where holders
	// wait for them much; see Blame.
	CPU bool
	// Opaque marks a collection of resources that are too many to name; it has
	// no utilisation.
	Opaque bool
}

// Usage is what happened in a time T.
type Usage struct {
	T         float64
	Cells     []Cell
	Resources map[string]*Resource
}

// Waiting is the time that operations waited for each resource.
func (u *Usage) Waiting() map[string]float64 {
	w := map[string]float64{}
	for _, c := range u.Cells {
		if c.Waits != "" {
			w[c.Waits] += c.Seconds
		}
	}
	return w
}

// Seconds is the time of all operations.
func (u *Usage) Seconds() float64 {
	sum := 0.0
	for _, c := range u.Cells {
		sum += c.Seconds
	}
	return sum
}

// Holders says what the holders of one resource did while they held it.
type Holders struct {
	Total float64            // seconds of holding
	Stage map[string]float64 // by budget stage
	Waits map[string]float64 // of it waiting for another resource, by resource
	Self  float64            // of it waiting for the same resource
}

// HoldersOf adds up what the holders of r did.
func (u *Usage) HoldersOf(r string) Holders {
	h := Holders{Stage: map[string]float64{}, Waits: map[string]float64{}}
	for _, c := range u.Cells {
		if !slices.Contains(c.Held, r) {
			continue
		}
		h.Total += c.Seconds
		h.Stage[c.Stage] += c.Seconds
		switch c.Waits {
		case "":
		case r:
			h.Self += c.Seconds
		default:
			h.Waits[c.Waits] += c.Seconds
		}
	}
	return h
}

// waiting is the share of the hold in which the holders waited for another
// resource.
func (h Holders) waiting() float64 {
	if h.Total == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range h.Waits {
		sum += v
	}
	return sum / h.Total
}

// Utilisation is the share of its capacity for which r was in use.
func (u *Usage) Utilisation(r *Resource) float64 {
	if r.Opaque || r.Capacity == 0 || u.T == 0 {
		return 0
	}
	return min(1, (r.Held+r.Foreign)/(r.Capacity*u.T))
}

// Table is the name of the table of a row resource "row:<table>/<key>", or "".
func Table(resource string) string {
	name, ok := strings.CutPrefix(resource, "row:")
	if !ok {
		return ""
	}
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return name
}
