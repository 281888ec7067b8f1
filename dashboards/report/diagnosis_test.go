package report_test

import (
	"bytes"
	"testing"

	"chokepoint/collectors"
	"chokepoint/dashboards/report"
)

func diagnosis() *report.Diagnosis {
	grant := []string{"GRANT PROCESS ON *.* TO 'mon'@'localhost';"}
	return &report.Diagnosis{Tool: "v1", Subjects: []report.Subject{
		{Name: "mysql 9.7.4-2", User: "mon", Findings: []collectors.Finding{
			{Check: "performance_schema", State: collectors.Visible, Found: "on", Fix: []string{}, Settings: []string{}},
			{Check: "lock_graph", State: collectors.Hidden, Found: "error 1227: Access denied; you need (at least one of) the PROCESS privilege(s) for this operation",
				Costs: "no hot rows by index, no blockers; a stranger's long transaction and gap locks look like a hot row", Fix: grant, Settings: []string{}},
			{Check: "innodb_counters", State: collectors.Hidden, Found: "error 1227", Costs: "deadlocks are not seen", Fix: grant, Settings: []string{}},
			{Check: "digest_table", State: collectors.Limited, Found: "full: all 200 rows are in use", Costs: "later statements cannot be told apart", Fix: []string{},
				Settings: []string{"[mysqld]", "performance_schema_digests_size=20000"}},
		}},
		{Name: "this machine", Findings: []collectors.Finding{{Check: "run_queue", State: collectors.Visible, Found: "can be read", Fix: []string{}, Settings: []string{}}}},
	}}
}

// TestDiagnosis: what mends more than one thing is asked for once.
func TestDiagnosis(t *testing.T) {
	for name, width := range map[string]int{"diagnosis.80.txt": 80, "diagnosis.160.txt": 160} {
		var b bytes.Buffer
		if err := diagnosis().WriteText(&b, report.Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.String())
	}
	var b bytes.Buffer
	if err := diagnosis().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "diagnosis.json", b.String())
}
