// Package report shows what an analysis found: as text for a terminal and as
// JSON for programs. Values are scaled and rounded here and nowhere else.
package report

import (
	"encoding/json"
	"io"

	"chokepoint/analysis"
)

// SchemaVersion is the version of the JSON that WriteJSON writes. Fields may be
// added to a version; their names and meanings do not change.
const SchemaVersion = 1

// Page is one report.
type Page struct {
	Tool   string // version of the build that made the report
	Result *analysis.Result
}

// tool is the build that made a report, in JSON.
type tool struct {
	Version string `json:"version"`
}

// WriteJSON writes the page as one indented JSON object, schema SchemaVersion.
func (p *Page) WriteJSON(w io.Writer) error {
	return encode(w, struct {
		SchemaVersion int  `json:"schema_version"`
		Tool          tool `json:"tool"`
		*analysis.Result
	}{SchemaVersion, tool{p.Tool}, p.Result})
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
