package sandbox

import "github.com/go-sql-driver/mysql"

// Flavor is whose server it is, which decides what it can be asked.
type Flavor string

// The flavors, as reports write them.
const (
	MySQL   Flavor = "mysql"
	MariaDB Flavor = "mariadb"
	Redis   Flavor = "redis"
	Valkey  Flavor = "valkey"
)

// Server is one running server of a sandbox.
type Server struct {
	Flavor  Flavor
	Version string // as the program tells it: "10.11.19-MariaDB-0+deb12u1"
	PID     int
	Socket  string // path of the Unix socket, the only way in
	LogFile string // everything it wrote to stdout and stderr; gone after Close

	process *process
}

// MySQLServer is a running MariaDB or MySQL.
type MySQLServer struct{ Server }

// Config returns a new configuration to connect with as root, without a
// password. It names no database: there are none yet.
func (m *MySQLServer) Config() *mysql.Config { return rootConfig(m.Socket) }

func rootConfig(socket string) *mysql.Config {
	c := mysql.NewConfig()
	c.User = "root"
	c.Net = "unix"
	c.Addr = socket
	return c
}
