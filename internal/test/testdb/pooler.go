package testdb

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// poolerConnections is the number of connections of a pooler to its server. It is below the number of a test's clients,
// so that a client gets connections that other clients have used.
const poolerConnections = 3

// Pooled returns the database as clients see it through PgBouncer in transaction mode: each transaction may run on
// another connection of the server. The URL disables prepared statements, because they belong to a connection. Admin
// does not use the pooler. A missing pooler is handled like a missing engine. The pooler ends with the test.
func (d *Database) Pooled(t testing.TB) *Database {
	t.Helper()
	program, err := findPooler()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("pgbouncer: %v; run scripts/setup.sh", err)
		}
		notTested(Engine{Name: "pgbouncer", Family: "postgres"}, err)
		t.Skipf("pgbouncer: %v", err)
	}
	port, err := d.server.pool(t, program)
	if err != nil {
		t.Fatal(err)
	}
	d.Admin() // opened with the URL of the server
	pooled := &Database{Engine: d.Engine, Name: d.Name, server: d.server, t: d.t, admin: d.admin,
		URL: fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable&default_query_exec_mode=exec",
			port, d.Name)}
	pooled.once.Do(func() {})
	return pooled
}

func findPooler() (string, error) {
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer"
	}
	if !exists(path) {
		return "", fmt.Errorf("%s not found", path)
	}
	return path, nil
}

// pool starts a pooler in front of the server and waits until it listens.
func (s *Server) pool(t testing.TB, program string) (port int, err error) {
	folder := filepath.Join(s.folder, fmt.Sprint("pooler", s.next.Add(1)))
	if err := os.Mkdir(folder, 0o755); err != nil {
		return 0, err
	}
	for range 5 { // another process may use the port first
		var release func()
		if port, release, err = freePort(); err != nil {
			return 0, err
		}
		t.Cleanup(release)
		config := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
`, s.Port, port, poolerConnections)
		file := filepath.Join(folder, "pgbouncer.ini")
		if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
			return 0, err
		}
		cmd := s.command(program, file)
		log, err := os.Create(filepath.Join(folder, "log"))
		if err != nil {
			return 0, err
		}
		cmd.Stdout, cmd.Stderr = log, log
		err = start(cmd)
		_ = log.Close()
		if err != nil {
			return 0, err
		}
		ended := make(chan struct{})
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		if listens(port, ended) {
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				<-ended
			})
			return port, nil
		}
		_ = cmd.Process.Kill()
		<-ended
	}
	text, _ := os.ReadFile(filepath.Join(folder, "log"))
	return 0, fmt.Errorf("testdb: pgbouncer does not listen\n%s", text)
}

// listens waits until a process answers on the port, or cmd has ended.
func listens(port int, ended <-chan struct{}) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			return c.Close() == nil
		}
		select {
		case <-ended:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return false
}
