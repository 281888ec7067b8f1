package redis

import (
	"context"
	"strings"

	"chokepoint/collectors"
	"chokepoint/collectors/record"
)

// Findings tells what the user of this connection can observe of the server,
// what is missing, what that costs a verdict, and what would mend it. It reads
// only.
func (s *Server) Findings(ctx context.Context) []collectors.Finding {
	all := []collectors.Finding{{Check: "info", State: collectors.Visible, Found: "INFO can be read"}} // Connect read it
	for _, c := range []struct {
		check  string
		source collectors.Source
		needs  string
		costs  string
	}{
		{"command_latency", latency{s}, "+latency|histogram", "no percentiles of the commands' time in the server"},
		{"slow_log", slowlog{s}, "+slowlog|len +slowlog|get", "slow commands are not counted"},
	} {
		f := collectors.Finding{Check: c.check, State: collectors.Visible, Found: c.source.Name() + " can be read"}
		b := &record.Batch{}
		err := c.source.Read(ctx, b)
		switch {
		case err != nil:
			f.State, f.Found, f.Costs = collectors.Hidden, strings.TrimPrefix(err.Error(), c.source.Name()+": "), c.costs
			if strings.Contains(f.Found, "(NOPERM)") {
				f.Fix = []string{"ACL SETUSER " + s.user() + " " + c.needs}
			}
		case c.check == "command_latency" && len(b.Values) == 0:
			f.State, f.Found, f.Costs = collectors.Limited, "no histogram of any command: latency-tracking is off, or nothing has run", c.costs
			f.Fix = []string{"CONFIG SET latency-tracking yes"}
		}
		all = append(all, f)
	}
	for i := range all {
		all[i].Fix, all[i].Settings = append([]string{}, all[i].Fix...), []string{}
	}
	return all
}

// user is the account of this connection.
func (s *Server) user() string {
	if u := s.Client.Options().Username; u != "" {
		return u
	}
	return "default"
}

// Process is the usual name of the server's process.
func (s *Server) Process() string { return s.Flavor + "-server" }
