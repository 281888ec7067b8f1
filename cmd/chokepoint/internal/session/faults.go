package session

import (
	"context"
	"database/sql"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"chokepoint/collectors/record"
)

// faults names what goes wrong on purpose, as the flag takes it.
func (p Plan) faults() string {
	var names []string
	for _, f := range p.Lock.Faults {
		names = append(names, f.String())
	}
	return strings.Join(names, ",")
}

// intrude lets the strangers of the faults in, until the function that it
// returns is called, which waits for them.
func (s *session) intrude(ctx context.Context) (leave func()) {
	if !s.work.Intrudes() {
		return func() {}
	}
	cfg := s.env.MySQL.Config.Clone()
	cfg.DBName = ""
	cfg.Logger = &driver.NopLogger{}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		s.rec.Event(record.Fault, "intruder", err.Error())
		return func() {}
	}
	db := sql.OpenDB(connector)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.work.Intrude(ctx, db, Schema) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			s.rec.Event(record.Fault, "intruder", err.Error())
		}
		db.Close()
	}
}
