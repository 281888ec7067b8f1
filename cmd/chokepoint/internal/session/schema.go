package session

import (
	"context"
	"database/sql"
	"fmt"
)

// SchemaPrefix begins the names of all schemas of ours.
const SchemaPrefix = "chokepoint_"

// marker is the table by which a schema shows that it is ours.
const marker = "chokepoint_marker"

// ownSchema makes the schema that the load works in. One that is there already
// must bear our marker: what is in it will be dropped.
func ownSchema(ctx context.Context, db *sql.DB) error {
	var schemas int
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", Schema).Scan(&schemas); err != nil {
		return fmt.Errorf("looking for schema %s: %w", Schema, err)
	}
	ours, err := marked(ctx, db, Schema)
	switch {
	case err != nil || ours:
		return err
	case schemas > 0:
		return fmt.Errorf("schema %s is on the server already and has no table %s: it is not ours, and nothing was touched", Schema, marker)
	}
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+Schema); err != nil {
		return fmt.Errorf("making schema %s: %w (grant the user ALL ON `chokepoint\\_%%`.*)", Schema, err)
	}
	ctx = context.WithoutCancel(ctx) // a schema of ours without its marker would be nobody's
	if _, err := db.ExecContext(ctx, "CREATE TABLE "+Schema+"."+marker+" (note VARCHAR(100) NOT NULL)"); err != nil {
		return fmt.Errorf("making schema %s: %w", Schema, err)
	}
	return nil
}

// marked tells whether a schema bears our marker.
func marked(ctx context.Context, db *sql.DB, schema string) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", schema, marker).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("looking for schema %s: %w", schema, err)
	}
	return n > 0, nil
}

// claim takes the named lock of our schema on a connection that is kept: two runs
// at once would drop each other's tables. The server frees it when the pool is
// closed.
func claim(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	// The connection is idle from here on: a server that ends idle ones would free
	// the lock.
	var got sql.NullInt64
	_, err = conn.ExecContext(ctx, "SET SESSION wait_timeout = 31536000")
	if err == nil {
		err = conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, 0)", Schema).Scan(&got)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("mysql: %w", err)
	}
	if got.Int64 != 1 {
		conn.Close()
		return nil, fmt.Errorf("another chokepoint is working in schema %s of this server (it has the named lock %q): wait for its end", Schema, Schema)
	}
	return conn, nil
}

// Clean drops the schemas that bear our marker, and returns their names and
// those of schemas that have our prefix and no marker, which it leaves alone.
// It fails while a run works on the server.
func Clean(ctx context.Context, db *sql.DB) (dropped, left []string, err error) {
	conn, err := claim(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	names, err := prefixed(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		ours, err := marked(ctx, db, name)
		if err != nil {
			return dropped, left, err
		}
		if !ours {
			left = append(left, name)
			continue
		}
		if _, err := db.ExecContext(ctx, "DROP DATABASE `"+name+"`"); err != nil {
			return dropped, left, fmt.Errorf("dropping schema %s: %w", name, err)
		}
		dropped = append(dropped, name)
	}
	return dropped, left, nil
}

// prefixed are the schemas whose names begin as ours, and hold nothing that
// would have to be quoted.
func prefixed(ctx context.Context, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME REGEXP ?", "^"+SchemaPrefix+"[a-z0-9_]+$")
	if err != nil {
		return nil, fmt.Errorf("looking for schemas of ours: %w", err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
