package lock

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

func TestParseFaults(t *testing.T) {
	got, err := ParseFaults("gap, metadata:mild,holder-cpu:strong")
	want := []Fault{{"gap", true}, {"metadata", false}, {"holder-cpu", true}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v, %s", err, d)
	}
	if none, err := ParseFaults(""); none != nil || err != nil {
		t.Errorf("%v (%v)", none, err)
	}
	for bad, why := range map[string]string{"gaps": "there is no fault", "gap:": "no strength", "gap:hard": "no strength", "gap,gap": "twice", ",": "there is no fault"} {
		if got, err := ParseFaults(bad); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q is %v (%v)", bad, got, err)
		}
	}
}

// TestFaultsFit: each fault alone goes with pessimistic; what does not go
// together is refused.
func TestFaultsFit(t *testing.T) {
	for _, name := range Faults() {
		o := Options{Strategy: "pessimistic", Keys: 2, Faults: []Fault{{name, true}}}
		w, err := New(nil, &redis.Client{}, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f := o.Faults[0].String(); f != name+":strong" {
			t.Errorf("%s is written %s", name, f)
		}
		if _, err := ParseFaults(o.Faults[0].String()); err != nil {
			t.Error(err)
		}
		if foreign := name == "long-transaction" || name == "metadata"; w.Intrudes() != foreign {
			t.Errorf("%s has strangers: %v", name, w.Intrudes())
		}
	}
	for _, bad := range []Options{
		{Strategy: "pessimistic", Keys: 2, Faults: []Fault{{"gap", true}, {"metadata", true}}},
		{Strategy: "pessimistic", Keys: 1, Faults: []Fault{{"deadlock", true}}},
		{Strategy: "atomic", Keys: 1, Faults: []Fault{{"holder-cpu", true}}},
	} {
		if _, err := New(nil, nil, bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	if _, err := New(nil, nil, Options{Strategy: "pessimistic", Faults: []Fault{{"holder-redis", false}}}); err == nil {
		t.Error("holder-redis goes without Redis")
	}
}
