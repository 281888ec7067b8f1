package collectors

// State is whether something of a server can be observed.
type State string

// States of a Finding, the best first.
const (
	Visible State = "ok"
	Limited State = "limited" // with less than it could tell
	Hidden  State = "missing"
)

// Finding is what a look at one capability of a server found.
type Finding struct {
	// Check names the capability, such as "statement_digests".
	Check string `json:"check"`
	State State  `json:"state"`
	// Found is what was seen, in one line.
	Found string `json:"found"`
	// Costs is what a verdict lacks without it; empty if nothing.
	Costs string `json:"costs,omitempty"`
	// Fix are the statements (SQL, or ACL of Redis) that mend it, as an
	// administrator would enter them.
	Fix []string `json:"fix"`
	// Settings are lines for the server's configuration file, where a statement
	// cannot mend it or a restart would undo it.
	Settings []string `json:"settings"`
}
