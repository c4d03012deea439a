package testdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Server is a running database server. Its methods return no errors: an error fails the test.
type Server struct {
	Engine Engine
	Port   int // 0 if the server is lent

	programs programs
	options  options
	folder   string // has the data, the log and other files of the server
	data     string
	release  func()       // ends the reservation of the port
	next     atomic.Int64 // number of the next database

	mu     sync.Mutex
	cmd    *exec.Cmd     // nil if it does not run
	exited chan struct{} // closed when cmd has ended
	paused []int         // children stopped by Pause; not nil while paused
}

type options struct {
	durable  bool
	settings []string
}

// Option is an option of a dedicated server.
type Option func(*options)

// Durable makes the server keep its data on the disk and flush it as in production. By default it does neither: commits
// survive a kill, but no power cut. The commit settings that clients see (innodb_flush_log_at_trx_commit,
// synchronous_commit) are strict in both cases.
func Durable() Option { return func(o *options) { o.durable = true } }

// Setting passes a setting to the server, in its own syntax: "log_bin=binlog", "timezone=Asia/Kathmandu". Later
// settings override earlier ones, and testdb's own.
func Setting(setting string) Option {
	return func(o *options) { o.settings = append(o.settings, setting) }
}

// Production is for measurements on a dedicated server: its commits are as durable and its memory as large as in
// production. more has further settings, which override these.
func (e Engine) Production(more ...string) []Option {
	options := []Option{Durable()}
	for _, setting := range slices.Concat(productionSettings[e.Name], more) {
		options = append(options, Setting(setting))
	}
	return options
}

var productionSettings = map[string][]string{
	Postgres15.Name: productionPostgres,
	Postgres18.Name: productionPostgres,
	MariaDB.Name:    {"innodb-buffer-pool-size=1G", "innodb-flush-log-at-trx-commit=1", "innodb-log-file-size=512M"},
	MySQL.Name: {"innodb-buffer-pool-size=1G", "innodb-flush-log-at-trx-commit=1",
		"innodb-redo-log-capacity=512M"},
}

var productionPostgres = []string{"shared_buffers=1GB", "max_wal_size=1GB", "fsync=on", "synchronous_commit=on",
	"autovacuum=on"}

// sharedServer starts a server at most once per process.
type sharedServer struct {
	once   sync.Once
	server *Server
	err    error
}

var (
	sharedServers sync.Map // Engine -> *sharedServer
	serversMu     sync.Mutex
	servers       = map[*Server]struct{}{} // all that may run
)

// Server returns the server that all tests of this process share. The first call starts it. Do not kill or pause it.
// For SQLite the call fails the test.
func (e Engine) Server(t testing.TB) *Server {
	t.Helper()
	v, _ := sharedServers.LoadOrStore(e, &sharedServer{})
	shared := v.(*sharedServer)
	shared.once.Do(func() { shared.server, shared.err = newServer(e, options{}) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// Dedicated starts a server that the test may kill and pause. It is stopped and removed at the end of the test. For
// SQLite the call fails the test. A test on a lent server is skipped.
func (e Engine) Dedicated(t testing.TB, opts ...Option) *Server {
	t.Helper()
	if e.lent() {
		t.Skipf("%s is a server that others may use, so it is not stopped or configured", e.Name)
	}
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	s, err := newServer(e, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", s.logTail())
		}
		s.remove()
	})
	return s
}

// newServer installs and starts a server.
func newServer(e Engine, o options) (*Server, error) {
	return startServer(e, o, (*Server).install)
}

// startServer makes a server's data folder with install, and starts the server.
func startServer(e Engine, o options, install func(*Server) error) (*Server, error) {
	if !e.HasServer() {
		return nil, fmt.Errorf("testdb: %s has no server; ask Engine.HasServer first", e.Name)
	}
	p, err := findPrograms(e)
	if err != nil {
		return nil, fmt.Errorf("testdb: %s: %w", e.Name, err)
	}
	if e.lent() {
		s := &Server{Engine: e, release: func() {}}
		return s, s.ping()
	}
	folder, err := newFolder(e.Name, o.durable)
	if err != nil {
		return nil, err
	}
	s := &Server{Engine: e, programs: p, options: o, folder: folder, data: filepath.Join(folder, "data"),
		release: func() {}}
	serversMu.Lock()
	servers[s] = struct{}{}
	serversMu.Unlock()
	if err := giveAway(folder); err != nil {
		return nil, fmt.Errorf("testdb: %s: %w", e.Name, err)
	}
	if err := install(s); err != nil {
		s.remove()
		return nil, err
	}
	// Between choosing a port and listening on it another process may use it.
	for range 5 {
		if s.Port, s.release, err = freePort(); err != nil {
			break
		}
		if err = s.start(); err == nil {
			return s, nil
		}
		s.release()
	}
	err = fmt.Errorf("%w\n%s", err, s.logTail())
	s.remove()
	return nil, err
}

// install makes the data folder.
func (s *Server) install() error {
	switch s.Engine {
	case MariaDB:
		return s.run(s.programs.install, "--no-defaults", "--datadir="+s.data,
			"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
	case MySQL:
		if err := os.CopyFS(s.data, os.DirFS(s.programs.data)); err != nil {
			return fmt.Errorf("testdb: copy MySQL's data folder: %w", err)
		}
		if err := os.WriteFile(filepath.Join(s.folder, "init.sql"), []byte(mysqlInit), 0o644); err != nil {
			return fmt.Errorf("testdb: %w", err)
		}
		return giveAway(s.folder)
	default:
		return s.run(s.programs.install, "--pgdata="+s.data, "--username=postgres", "--auth=trust",
			"--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	}
}

// arguments are the server's, without its name.
func (s *Server) arguments() []string {
	if s.Engine.Family == "postgres" {
		return s.postgresArguments()
	}
	return s.mysqlArguments()
}

// command prepares a program to run as the server's user in the server's folder.
func (s *Server) command(name string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(name, arguments...)
	cmd.Dir = s.folder
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.folder, "TMPDIR=" + s.folder, "LC_ALL=C", "TZ=UTC"}
	dropPrivileges(cmd)
	return cmd
}

// run runs a program to its end.
func (s *Server) run(name string, arguments ...string) error {
	cmd := s.command(name, arguments...)
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	err := start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("testdb: %s: %w\n%s", name, err, output.String())
	}
	return nil
}

// start starts the installed server on its port and waits until it answers.
func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return errors.New("testdb: the server is running already")
	}
	log, err := os.OpenFile(s.logName(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("testdb: %w", err)
	}
	defer log.Close()
	cmd := s.command(s.programs.server, s.arguments()...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := start(cmd); err != nil {
		return fmt.Errorf("testdb: start %s: %w", s.Engine.Name, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	s.cmd, s.exited, s.paused = cmd, exited, nil
	deadline := time.Now().Add(patience)
	for {
		err := s.ping()
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			s.cmd = nil
			return fmt.Errorf("testdb: %s ended while starting", s.Engine.Name)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			_ = s.kill()
			return fmt.Errorf("testdb: %s does not answer: %w", s.Engine.Name, err)
		}
	}
}

// ping sends a query to the server on a new connection.
func (s *Server) ping() error {
	db, err := openURL(s.url(""), nil)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return db.PingContext(ctx)
}

// Start starts a killed server again, on the same data and port. The server recovers all commits.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatalf("%v\n%s", err, s.logTail())
	}
}

// Kill kills the server with all its processes (SIGKILL) and returns when they have ended.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		t.Fatal("testdb: Kill: the server does not run")
	}
	if err := s.kill(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) kill() error {
	if s.cmd == nil {
		return nil
	}
	err := killTree(s.cmd.Process.Pid)
	<-s.exited
	s.cmd, s.paused = nil, nil
	return err
}

// Pause stops the server's processes (SIGSTOP). The server keeps its connections, locks and port, and answers nothing
// until Resume.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || s.paused != nil {
		t.Fatal("testdb: Pause: the server does not run")
	}
	s.paused = append([]int{}, freeze(s.cmd.Process.Pid)...)
}

// Resume continues a paused server.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || s.paused == nil {
		t.Fatal("testdb: Resume: the server is not paused")
	}
	thaw(s.cmd.Process.Pid, s.paused)
	s.paused = nil
}

// remove stops the server for good and removes its folder.
func (s *Server) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil && s.paused == nil && s.Engine.Family == "postgres" {
		// An immediate shutdown, which releases the shared memory.
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-s.exited:
			s.cmd = nil
		case <-time.After(5 * time.Second):
		}
	}
	_ = s.kill()
	s.release()
	removeSharedMemory(s.data)
	_ = os.RemoveAll(s.folder)
	serversMu.Lock()
	delete(servers, s)
	serversMu.Unlock()
}

// stopAll stops every server of this process.
func stopAll() {
	serversMu.Lock()
	var left []*Server
	for s := range servers {
		left = append(left, s)
	}
	serversMu.Unlock()
	var wg sync.WaitGroup
	for _, s := range left {
		wg.Go(s.remove)
	}
	wg.Wait()
	removeFolders()
}

func (s *Server) logName() string { return filepath.Join(s.folder, "server.log") }

// logTail returns the last lines of the server's log.
func (s *Server) logTail() string {
	text, _ := os.ReadFile(s.logName())
	lines := strings.SplitAfter(string(text), "\n")
	return s.Engine.Name + "'s log:\n" + strings.Join(lines[max(0, len(lines)-40):], "")
}
