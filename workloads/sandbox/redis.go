package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"
)

const (
	redisSocket = "redis.sock"
	redisLog    = "redis.log"
)

// startRedis starts the Redis or Valkey server of this machine, and waits until
// it answers.
func (s *Sandbox) startRedis(ctx context.Context, h host, version string) (*Server, error) {
	p, err := h.findRedis(ctx, version)
	if err != nil {
		return nil, err
	}
	dir := s.folder.path
	r := &Server{
		Flavor:  p.flavor,
		Version: p.version,
		Socket:  filepath.Join(dir, redisSocket),
		LogFile: filepath.Join(dir, redisLog),
	}
	proc, err := s.keeper.launch(p, dir, r.LogFile,
		"--port", "0",
		"--unixsocket", r.Socket,
		"--unixsocketperm", "700",
		"--dir", dir,
		"--save", "",
		"--appendonly", "no",
		"--daemonize", "no")
	if err != nil {
		return nil, err
	}
	r.process, r.PID = proc, proc.cmd.Process.Pid
	ping := func(ctx context.Context) error { return pingRedis(ctx, r.Socket) }
	if err := proc.await(ctx, ping); err != nil {
		proc.kill()
		return nil, err
	}
	return r, nil
}

// pingRedis sends one PING, in the protocol's inline form.
func pingRedis(ctx context.Context, socket string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	hangUp := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(0, 1)) })
	defer hangUp()
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if answer = strings.TrimSpace(answer); answer != "+PONG" {
		return fmt.Errorf("answer to PING is %q", answer)
	}
	return nil
}
