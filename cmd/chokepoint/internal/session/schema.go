package session

import (
	"context"
	"database/sql"
	"fmt"
)

// marker is the table by which a schema shows that it is ours.
const marker = "chokepoint_marker"

// ownSchema makes the schema that the load works in. One that is there already
// must bear our marker: what is in it will be dropped.
func ownSchema(ctx context.Context, db *sql.DB) error {
	var schemas, markers int
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", Schema).Scan(&schemas); err != nil {
		return fmt.Errorf("looking for schema %s: %w", Schema, err)
	}
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", Schema, marker).Scan(&markers); err != nil {
		return fmt.Errorf("looking for schema %s: %w", Schema, err)
	}
	switch {
	case markers > 0:
		return nil
	case schemas > 0:
		return fmt.Errorf("schema %s is on the server already and has no table %s: it is not ours, and nothing was touched", Schema, marker)
	}
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+Schema); err != nil {
		return fmt.Errorf("making schema %s: %w (grant the user ALL ON `chokepoint\\_%%`.*)", Schema, err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE "+Schema+"."+marker+" (note VARCHAR(100) NOT NULL)"); err != nil {
		return fmt.Errorf("making schema %s: %w", Schema, err)
	}
	return nil
}
