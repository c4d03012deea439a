package testdb

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Primary starts a dedicated server that may have replicas.
func (e Engine) Primary(t testing.TB) *Server {
	t.Helper()
	if e.Family == "postgres" {
		return e.Dedicated(t) // the engine's defaults allow replicas
	}
	return e.Dedicated(t, Setting("log_bin=binlog"), Setting("sync_binlog=1"), Setting("server_id=1"))
}

// Replica starts a replica of s, which Primary must have started: a standby of PostgreSQL, or a read-only replica of
// MariaDB that reads s's binary log from its beginning. It ends with the test.
func (s *Server) Replica(t testing.TB) *Server {
	t.Helper()
	o := options{durable: s.options.durable}
	var prepare func(*Server) error
	if s.Engine.Family == "postgres" {
		prepare = func(r *Server) error {
			tool := filepath.Join(filepath.Dir(s.programs.server), "pg_basebackup")
			return r.run(tool, "--dbname="+fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", s.Port),
				"--pgdata="+r.data, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
		}
	} else {
		o.settings = []string{"server_id=2", readOnly}
		prepare = (*Server).install
	}
	r, err := startServer(s.Engine, o, prepare)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", r.logTail())
		}
		r.remove()
	})
	if s.Engine.Family == "mysql" {
		for _, statement := range []string{
			fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='root', "+
				"MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos", s.Port),
			"START SLAVE",
		} {
			if err := r.administer(statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

// readOnly is the setting of a replica that its administrator turns off when the replica becomes a primary.
// PostgreSQL's standby state serves the same purpose.
const readOnly = "read_only=1"

// CutReplication stops a replica for good: it gets no more of what the primary writes.
func (s *Server) CutReplication(t testing.TB) {
	t.Helper()
	statements := []string{"ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"}
	if s.Engine.Family == "mysql" {
		statements = []string{"STOP SLAVE"}
	}
	for _, statement := range statements {
		if err := s.administer(statement); err != nil {
			t.Fatal(err)
		}
	}
	if s.Engine.Family == "postgres" {
		s.until(t, "SELECT NOT EXISTS (SELECT 1 FROM pg_stat_wal_receiver)")
	}
}

// Promote makes a replica a primary of its own.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	statements := []string{"SELECT pg_promote()"}
	if s.Engine.Family == "mysql" {
		statements = []string{"STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0"}
	}
	for _, statement := range statements {
		if err := s.administer(statement); err != nil {
			t.Fatal(err)
		}
	}
	s.options.settings = slices.DeleteFunc(slices.Clone(s.options.settings),
		func(setting string) bool { return setting == readOnly })
}

// HoldReplication hides new writes of the primary on a replica, until the returned function is called.
func (s *Server) HoldReplication(t testing.TB) (release func()) {
	t.Helper()
	hold, let := "SELECT pg_wal_replay_pause()", "SELECT pg_wal_replay_resume()"
	if s.Engine.Family == "mysql" {
		hold, let = "STOP SLAVE SQL_THREAD", "START SLAVE SQL_THREAD"
	}
	if err := s.administer(hold); err != nil {
		t.Fatal(err)
	}
	if s.Engine.Family == "postgres" {
		s.until(t, "SELECT pg_get_wal_replay_pause_state() = 'paused'")
	}
	return func() {
		t.Helper()
		if err := s.administer(let); err != nil {
			t.Fatal(err)
		}
	}
}

// HoldCommits makes commits of a primary wait for an acknowledgement that no replica gives, until the returned function
// is called. A replica shows such a commit, and the primary does not show it yet.
func (s *Server) HoldCommits(t testing.TB) (release func()) {
	t.Helper()
	hold := []string{"ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"}
	let := []string{"ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()"}
	if s.Engine.Family == "mysql" {
		hold = []string{"SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC",
			"SET GLOBAL rpl_semi_sync_master_timeout = 3600000", "SET GLOBAL rpl_semi_sync_master_enabled = ON"}
		let = []string{"SET GLOBAL rpl_semi_sync_master_enabled = OFF"}
	}
	all := func(statements []string) {
		t.Helper()
		for _, statement := range statements {
			if err := s.administer(statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	all(hold)
	release = sync.OnceFunc(func() { all(let) })
	t.Cleanup(release)
	if s.Engine.Family == "postgres" { // loads a setting some time after it was asked to
		var held atomic.Bool
		go func() {
			for !held.Load() && s.administer("SELECT pg_logical_emit_message(true, 'rowfeed', '')") == nil {
			}
		}()
		s.until(t, "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep')")
		held.Store(true)
	}
	return release
}

// until waits until a query returns true.
func (s *Server) until(t testing.TB, question string) {
	t.Helper()
	db, err := openURL(s.url(""), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for deadline := time.Now().Add(patience); ; {
		var yes bool
		err := db.QueryRowContext(context.Background(), question).Scan(&yes)
		switch {
		case err == nil && yes:
			return
		case time.Now().After(deadline):
			t.Fatalf("testdb: %s: %v %v", question, yes, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// On returns the database of the same name on another server, a replica.
func (d *Database) On(t testing.TB, s *Server) *Database {
	return &Database{Engine: d.Engine, Name: d.Name, URL: s.url(d.Name), server: s, t: t}
}

// TakePlace starts the successor of a stopped or killed server on the same port, so that clients find it.
func (s *Server) TakePlace(t testing.TB, of *Server) {
	t.Helper()
	s.Stop(t)
	s.Port = of.Port
	s.Start(t)
}
