package record_test

import (
	"slices"
	"testing"

	"chokepoint/collectors/record"
)

func TestSeriesText(t *testing.T) {
	for _, c := range []struct {
		metric string
		labels []string
		want   string
	}{
		{"g", nil, "g"},                         // a metric without labels is its own series
		{"g", []string{""}, "g{}"},              // one empty label is not none
		{"g", []string{"", ""}, "g{,}"},         // nor are two
		{"m.n", []string{"a", "b"}, "m.n{a,b}"}, // in the order of the description
		{"m", []string{`a,b`}, `m{a\,b}`},       // the four that are escaped
		{"m", []string{`{\}`}, `m{\{\\\}}`},
		{"m", []string{"a b\n\"é"}, "m{a b\n\"é}"}, // and nothing else
	} {
		if got := record.Series(c.metric, c.labels...); got != c.want {
			t.Errorf("%s %q is written %q, want %q", c.metric, c.labels, got, c.want)
		}
		metric, labels, err := record.ParseSeries(c.want)
		if err != nil || metric != c.metric || !slices.Equal(labels, c.labels) {
			t.Errorf("%q is read as %s %q (%v), want %q", c.want, metric, labels, err, c.labels)
		}
	}
}

func TestParseSeriesRefuses(t *testing.T) {
	for _, bad := range []string{
		"",        // no name
		"{a}",     // labels of nothing
		"a}",      // a brace without a beginning
		"a,b",     // two names
		`a\b`,     // a backslash in a name
		`a\{b}`,   // an escaped brace in a name
		"a{b",     // not closed
		"a{b,",    // nor here
		`a{b\`,    // ends in a backslash
		`a{b\}`,   // the brace is part of the label
		"a{b}c",   // text behind it
		"a{b}{c}", // twice
		"a{b{c}}", // an unescaped brace in a label
	} {
		if metric, labels, err := record.ParseSeries(bad); err == nil {
			t.Errorf("%q is taken for %s %q", bad, metric, labels)
		}
	}
}

// TestParseSeriesOneSpelling: a series has one spelling, else readings of one
// series would stand under two names.
func TestParseSeriesOneSpelling(t *testing.T) {
	if metric, labels, err := record.ParseSeries(`m{\a}`); err == nil {
		t.Errorf(`m{\a} is taken for %s, which is written %q`, metric, record.Series(metric, labels...))
	}
}

// FuzzParseSeries: what is read as a series is read the same once it has been
// written again.
func FuzzParseSeries(f *testing.F) {
	for _, s := range []string{"g", "g{}", `m{a\,b,c}`, `m{\\\{\}}`, "m{", `m{\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		metric, labels, err := record.ParseSeries(s)
		if err != nil {
			return
		}
		again, relabels, err := record.ParseSeries(record.Series(metric, labels...))
		if err != nil || again != metric || !slices.Equal(labels, relabels) {
			t.Errorf("%q is %s %q, and written again %s %q (%v)", s, metric, labels, again, relabels, err)
		}
	})
}
