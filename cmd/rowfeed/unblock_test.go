package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestUnblockEndsHolderOfShard (M44): `status` names the session that holds shard 5, and `unblock` ends it.
func TestUnblockEndsHolderOfShard(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Exec(t, "CREATE TABLE ev (id BIGINT NOT NULL PRIMARY KEY, shard BIGINT NOT NULL, u "+
			map[string]string{"sqlite": "BLOB", "postgres": "uuid", "mysql": "BINARY(16)"}[e.Family]+" NOT NULL)")
		db.Exec(t, "CREATE UNIQUE INDEX ev_feed ON ev (shard, u)")
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		s.ok("init")
		db.Exec(t, "INSERT INTO ev VALUES (1, 5, "+map[string]string{"sqlite": "x'01857302da88ffffbfffffffffffffff'",
			"postgres": "'01857302da88ffffbfffffffffffffff'",
			"mysql":    "x'01857302da88ffffbfffffffffffffff'"}[e.Family]+")")
		s.ok("feed add ev --table ev --mode blocking --position-column u --shard-column shard")
		const head = "ev: shard 5: head 01GNSG5PM8ZZZVZZZZZZZZZZZZ of 2023-01-02T15:04:05Z"
		if out := s.ok("status ev"); !strings.Contains(out, head+"\n") {
			t.Errorf("status: %s", out)
		}
		if got := s.fails(cli.ExitUsage, "unblock ev --session="); !strings.Contains(got, "--session is empty") {
			t.Error(got)
		}
		if e.Family == "sqlite" {
			if got := s.fails(cli.ExitFailed,
				"unblock ev --shard 5"); !strings.Contains(got, "no sessions that another process could end") {
				t.Error(got)
			}
			return
		}
		s.prints("unblock ev --shard 5", "ev: no transaction holds shard 5, nothing changed\n")
		pool := db.OpenTapped(t, testdb.Hooks{})
		tx, err := pool.Begin()
		if err != nil {
			t.Fatal(err)
		}
		var id string
		if err := tx.QueryRow(map[string]string{
			"postgres": "SELECT pg_backend_pid()", "mysql": "SELECT CONNECTION_ID()",
		}[e.Family]).Scan(&id); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(map[string]string{
			"postgres": "SELECT rowfeed_lock_ev(5)", "mysql": "CALL rowfeed_lock_ev(5, NULL, @u, @h, @l)",
		}[e.Family]); err != nil {
			t.Fatal(err)
		}
		held := regexp.MustCompile(
			fmt.Sprintf(`^ev: shard 5 is held by session %s \(.*\) since 20[0-9TZ:-]+, for [0-9.µms]+, \S.*\n$`, id),
		)
		if out := s.ok("unblock ev --shard 5 --dry-run"); !held.MatchString(out) {
			t.Errorf("--dry-run: %s", out)
		}
		if out := s.ok("status ev"); e != testdb.MariaDB && !strings.Contains(out, head+"; held by session "+id+" (") ||
			e == testdb.MariaDB &&
				!strings.Contains(out,
					"ev: the holder of a shard is known only while another transaction waits for it\n") {
			t.Errorf("status: %s", out)
		}
		if got := s.fails(cli.ExitFailed, "unblock ev --shard 5 --session 0"); !strings.Contains(got,
			"session 0 does not hold the shard; its holder is session "+id) {
			t.Error(got)
		}
		var ended struct {
			Shard  int
			Ended  bool
			Holder struct{ Session string }
		}
		s.decode(s.ok("unblock ev --shard 5 --json"), &ended)
		if ended.Shard != 5 || !ended.Ended || ended.Holder.Session != id {
			t.Errorf("%+v", ended)
		}
		if err := tx.Commit(); err == nil {
			t.Error("the ended transaction was committed")
		}
		// The database may report the ended session for a moment.
		deadline := time.Now().Add(time.Minute)
		free := "ev: no transaction holds shard 5, nothing changed\n"
		for s.run("unblock", "ev", "--shard", "5", "--dry-run").out != free {
			if time.Now().After(deadline) {
				t.Fatal("after a minute, unblock still reports a holder of the shard")
			}
		}
		pool.Close()
	})
}
