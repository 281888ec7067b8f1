package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"chokepoint/collectors"
)

// Diagnosis is what a look at servers and the machine found.
type Diagnosis struct {
	Tool     string // version of the build that looked
	Subjects []Subject
}

// Subject is something that was looked at.
type Subject struct {
	Name     string               `json:"name"` // such as "mysql 9.7.4-2"
	User     string               `json:"user"` // empty if none is needed
	Findings []collectors.Finding `json:"findings"`
}

// WriteJSON writes the diagnosis as one indented JSON object, schema
// SchemaVersion.
func (d *Diagnosis) WriteJSON(w io.Writer) error {
	return encode(w, struct {
		SchemaVersion int       `json:"schema_version"`
		Tool          tool      `json:"tool"`
		Subjects      []Subject `json:"subjects"`
	}{SchemaVersion, tool{d.Tool}, d.Subjects})
}

// WriteText writes the findings for a terminal, and at the end all that mends
// what is missing, to be copied whole.
func (d *Diagnosis) WriteText(out io.Writer, s Style) error {
	s.Width = min(max(s.Width, minWidth), maxWidth)
	t := &text{w: bufio.NewWriter(out), Style: s}
	var fixes, settings []string
	for i, sub := range d.Subjects {
		if i == 0 {
			t.wrap("", "  ", sub.head())
		} else {
			t.heading(sub.head())
		}
		for _, f := range sub.Findings {
			t.finding(f)
			fixes, settings = appendNew(fixes, f.Fix), appendNew(settings, f.Settings)
		}
	}
	t.verbatim("TO MEND IT, AN ADMINISTRATOR ENTERS", fixes)
	t.verbatim("TO MEND IT FOR GOOD, IN THE CONFIGURATION OF THE SERVER (OR OF THE MACHINE)", settings)
	if len(fixes)+len(settings) == 0 {
		t.heading("Nothing is missing.")
	}
	return t.w.Flush()
}

func (s Subject) head() string {
	if s.User != "" {
		return s.Name + ", as " + s.User
	}
	return s.Name
}

func (t *text) finding(f collectors.Finding) {
	t.wrap("  "+fmt.Sprintf("%-8s", f.State), "          ", f.Check+": "+f.Found)
	if f.Costs != "" {
		t.wrap("          ", "          ", "costs: "+f.Costs)
	}
}

func (t *text) verbatim(head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.heading(head)
	for _, line := range lines {
		t.printf("%s\n", line)
	}
}

// appendNew appends those that are not there yet.
func appendNew(to, all []string) []string {
	for _, s := range all {
		if !slices.Contains(to, s) {
			to = append(to, s)
		}
	}
	return to
}
