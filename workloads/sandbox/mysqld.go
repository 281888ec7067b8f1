package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	mysqlSocket = "mysql.sock"
	mysqlLog    = "mysqld.log"
)

// startMySQL starts p on a copy of its template, and waits until it answers.
func (s *Sandbox) startMySQL(ctx context.Context, h host, p program, o Options) (*MySQLServer, error) {
	dir := s.folder.path
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return nil, err
	}
	if err := s.makeData(ctx, h, p, o.Log); err != nil {
		return nil, confined(p, err)
	}
	m := &MySQLServer{Server{
		Flavor:  p.flavor,
		Version: p.version,
		Socket:  filepath.Join(dir, mysqlSocket),
		LogFile: filepath.Join(dir, mysqlLog),
	}}
	proc, err := s.keeper.launch(p, dir, m.LogFile, mysqldArguments(p.flavor, dir, o)...)
	if err != nil {
		return nil, err
	}
	m.process, m.PID = proc, proc.cmd.Process.Pid
	if err := proc.await(ctx, m.ping); err != nil {
		proc.kill()
		return nil, confined(p, err)
	}
	return m, nil
}

// makeData copies the template of p to the sandbox.
func (s *Sandbox) makeData(ctx context.Context, h host, p program, log *slog.Logger) error {
	cache, err := h.cache()
	if err != nil {
		return err
	}
	run, err := s.keeper.initialiser(h, p)
	if err != nil {
		return err
	}
	t := newTemplate(cache, p)
	logged := func(ctx context.Context, data, temp string, held *os.File) error {
		began := time.Now()
		log.Info("sandbox: initialising a data folder, once for this server version", "server", p.String(), "template", t.dir)
		err := run(ctx, data, temp, held)
		if err == nil {
			log.Info("sandbox: initialised", "server", p.String(), "took", time.Since(began).Round(time.Millisecond))
		}
		return err
	}
	return t.copyTo(ctx, filepath.Join(s.folder.path, "data"), logged)
}

// mysqldArguments are the options of a server in dir. See the package comment
// for what they give up.
func mysqldArguments(f Flavor, dir string, o Options) []string {
	args := []string{
		"--no-defaults", // must be first
		"--datadir=" + filepath.Join(dir, "data"),
		"--tmpdir=" + filepath.Join(dir, "tmp"),
		"--socket=" + filepath.Join(dir, mysqlSocket),
		"--pid-file=" + filepath.Join(dir, "mysqld.pid"),
		"--skip-networking",
		"--skip-name-resolve",
		"--skip-log-bin",
		"--performance-schema=ON", // MariaDB's default is OFF
		fmt.Sprintf("--max-connections=%d", o.MaxConnections+observers),
		// All may come back at once; the default listen queue of 80 refuses them.
		fmt.Sprintf("--back-log=%d", o.MaxConnections+observers),
		"--innodb-flush-log-at-trx-commit=0",
		"--innodb-doublewrite=OFF",
		"--innodb-fast-shutdown=2",
		"--innodb-buffer-pool-dump-at-shutdown=OFF",
		"--innodb-buffer-pool-load-at-startup=OFF",
	}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root") // else it refuses to run as root
	}
	args = append(args, engineSizes(f)...)
	if f == MySQL {
		args = append(args,
			"--mysqlx=OFF",            // else it listens on port 33060, whatever skip-networking says
			"--secure-file-priv=NULL", // its built-in default is a folder that may not exist
			"--innodb-flush-method=fsync")
	} else {
		args = append(args,
			"--secure-file-priv="+filepath.Join(dir, "tmp"),
			"--performance-schema-instrument=wait/lock/metadata/sql/mdl=ON", // off by default, on MySQL on
			"--skip-ssl") // else 11.4 and later make a key at each start
	}
	return append(args, o.arguments()...)
}

// engineSizes keep a data folder small. Initialising and running use the same,
// else the first start would have to resize the redo log.
func engineSizes(f Flavor) []string {
	redo := "--innodb-log-file-size=32M"
	if f == MySQL {
		redo = "--loose-innodb-redo-log-capacity=32M" // loose: there since 8.0.30
	}
	return []string{"--innodb-buffer-pool-size=64M", redo}
}

// query runs one query for one number on a connection of its own.
func (m *MySQLServer) query(ctx context.Context, text string) (int, error) {
	c := m.Config()
	c.Logger = &mysql.NopLogger{} // a server that is starting may hang up
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return 0, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var n int
	return n, db.QueryRowContext(ctx, text).Scan(&n)
}

func (m *MySQLServer) ping(ctx context.Context) error {
	_, err := m.query(ctx, "SELECT 1")
	return err
}

// connectionsQuery asks how many connections the server can take. MySQL lowers
// max_connections itself to what the limit of open files allows, MariaDB does
// not. A connection is a file; some 64 more are for tables, logs and the like.
const connectionsQuery = "SELECT LEAST(@@max_connections, CAST(@@open_files_limit AS SIGNED) - 64)"

// shortOfConnections returns a warning if the server cannot take as many
// connections as the workload may open.
func (m *MySQLServer) shortOfConnections(ctx context.Context, want int) (string, error) {
	got, err := m.query(ctx, connectionsQuery)
	if err != nil {
		return "", fmt.Errorf("%s: connections: %w", m.Flavor, err)
	}
	if got >= want+observers {
		return "", nil
	}
	return fmt.Sprintf("%s: takes %d connections, not %d and %d for observers: is the limit of open files (ulimit -n) too low?",
		m.Flavor, got, want, observers), nil
}

// confined adds to the error of a server that may not read its data that
// Ubuntu's package of MySQL confines mysqld to /var/lib/mysql.
func confined(p program, err error) error {
	const profile = "/etc/apparmor.d/usr.sbin.mysqld"
	if p.flavor != MySQL || !strings.Contains(err.Error(), "ermission denied") {
		return err
	}
	if _, statErr := os.Stat(profile); statErr != nil {
		return err
	}
	return errors.Join(err, fmt.Errorf("AppArmor's profile %s may be what denies it: aa-complain mysqld, or use MariaDB", profile))
}
