package open

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/sink/sqlmirror"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/sqlserver"
)

// openPeer opens a pool of one connection on a peer with canned answers.
func openPeer(t *testing.T, answer func(sent string) []byte) (*sql.DB, *tdsPeer) {
	t.Helper()
	if answer == nil {
		answer = func(string) []byte { return nil }
	}
	p := newTDSPeer(t, answer)
	pool, d, err := Open(t.Context(), p.url(""), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	if d.Name != sqlserver.New().Name {
		t.Fatalf("the dialect is %s", d.Name)
	}
	pool.SetMaxOpenConns(1)
	return pool, p
}

func wantSent(t *testing.T, p *tdsPeer, want ...string) {
	t.Helper()
	if got := p.requests(); !slices.Equal(got, want) {
		t.Errorf("sent:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSQLServerSessionBegins (H23): a connection has its isolation level before anything else runs on it, whenever the
// pool hands it out, because a reset of the session keeps the level of its user before.
func TestSQLServerSessionBegins(t *testing.T) {
	pool, p := openPeer(t, nil)
	wantSent(t, p, "login sa to shop by rowfeed, read-write", "reset, "+sqlServerSession, "select 1;")
	if _, err := pool.Exec("DELETE FROM t"); err != nil {
		t.Fatal(err)
	}
	wantSent(t, p, "reset, "+sqlServerSession, "DELETE FROM t")

	p.requests()
	reader, _, err := Open(t.Context(), p.url("&ApplicationIntent=ReadOnly&app+name=pages"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if sent := p.requests(); sent[0] != "login sa to shop by pages, read-only" {
		t.Errorf("sent %q", sent)
	}
}

// TestSQLServerTransactions begins a transaction for each purpose as the library does. The driver refuses transactions
// that are read-only. The settings are sent without parameters: inside of sp_executesql they would end with it.
func TestSQLServerTransactions(t *testing.T) {
	pool, p := openPeer(t, nil)
	p.requests()
	const readCommitted, snapshot = "begin 2", "begin 5"
	for purpose := dialect.ForPublish; purpose <= dialect.ForConsume; purpose++ {
		b := sqlserver.New().Begin(purpose, dialect.Names{})
		tx, err := pool.BeginTx(t.Context(), b.Options)
		if err != nil {
			t.Fatalf("purpose %d: %v", purpose, err)
		}
		want := []string{"reset, " + sqlServerSession, readCommitted}
		if purpose == dialect.ForCheck {
			want[1] = snapshot
		}
		for _, setting := range b.First {
			if _, err := tx.Exec(setting); err != nil {
				t.Fatal(err)
			}
			want = append(want, setting)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		wantSent(t, p, append(want, "commit")...)
	}
}

// TestSQLServerParameters: what the driver makes of the values that rowfeed sends. A nil is a text of one character,
// for every kind of column; empty texts and binaries are of the types without a limit; a time has an offset.
func TestSQLServerParameters(t *testing.T) {
	pool, p := openPeer(t, nil)
	p.requests()
	long := strings.Repeat("é", 4001)
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, "@p1 nvarchar(1) | NULL"},
		{"né", "@p1 nvarchar(2) | né"},
		{"", "@p1 nvarchar(max) | "},
		{"😀", "@p1 nvarchar(2) | 😀"},
		{long, "@p1 nvarchar(max) | " + long},
		{[]byte{0, 255}, "@p1 varbinary(2) | 00ff"},
		{[]byte{}, "@p1 varbinary(max) | "},
		{[]byte(nil), "@p1 varbinary(max) | NULL"},
		{int64(-1), "@p1 bigint | ffffffffffffffff"},
		{7, "@p1 bigint | 0700000000000000"},
		{1.5, "@p1 float | 000000000000f83f"},
		{true, "@p1 bit | 01"},
		{sql.NullString{}, "@p1 nvarchar(4000) | NULL"},
		{sql.NullInt64{}, "@p1 bigint | NULL"},
		{time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), "@p1 datetimeoffset(7) | 00e03495643e490b0000"},
	} {
		if _, err := pool.Exec("SELECT @p1", c.value); err != nil {
			t.Errorf("%T: %v", c.value, err)
			continue
		}
		wantSent(t, p, "reset, "+sqlServerSession, "SELECT @p1 | "+c.want)
	}
}

// TestSQLServerErrorsHaveClasses: the dialect reads the numbers of the errors that the driver returns, also if the
// server ends the session with the error, and if the connection breaks.
func TestSQLServerErrorsHaveClasses(t *testing.T) {
	answer := []byte(nil)
	pool, _ := openPeer(t, func(sent string) []byte {
		if sent == "FAIL NOW" || strings.HasPrefix(sent, "FAIL @p1") {
			return answer
		}
		return nil
	})
	d := sqlserver.New()
	fails := func(number int32, severity byte, want dialect.Class) {
		t.Helper()
		answer = failure(number, severity)
		for _, args := range [][]any{nil, {1}} {
			statement := "FAIL NOW"
			if args != nil {
				statement = "FAIL @p1"
			}
			if _, err := pool.Exec(statement, args...); err == nil || d.Classify(err) != want {
				t.Errorf("error %d is of class %d (%v), want %d", number, d.Classify(err), err, want)
			}
		}
	}
	fails(1205, 13, dialect.ClassRetry)
	fails(3960, 16, dialect.ClassRetry)
	fails(1222, 16, dialect.ClassLockTimeout)
	fails(77101, 16, dialect.ClassLockTimeout)
	fails(208, 16, dialect.ClassUndefined)
	fails(229, 14, dialect.ClassPermission)
	fails(2627, 14, dialect.ClassDuplicate)
	fails(2628, 16, dialect.ClassInvalid)
	fails(1105, 17, dialect.ClassFull)
	fails(3906, 16, dialect.ClassReadOnly)
	fails(102, 15, dialect.ClassOther)
	fails(9002, 21, dialect.ClassFull)
	answer = []byte{}
	if _, err := pool.Exec("FAIL NOW"); d.Classify(err) != dialect.ClassConnection {
		t.Errorf("a broken connection is of class %d: %v", d.Classify(err), err)
	}
}

// TestSQLServerLockedShardIsALockTimeout: if another transaction has locked a mover's shard, the mover continues with
// other shards. A mover recognizes this by the error's class, and a writer by the error itself.
func TestSQLServerLockedShardIsALockTimeout(t *testing.T) {
	pool, _ := openPeer(t, func(sent string) []byte {
		if strings.Contains(sent, "rowfeed_turn") {
			return failure(77101, 16)
		}
		return nil
	})
	d := sqlserver.New()
	f := &dialect.Feed{Name: "kv", Names: dialect.Names{Schema: "dbo", Prefix: "rowfeed_"}}
	_, err := d.LockShard(t.Context(), dialect.On(pool), f, 3, dialect.LockBounds{NoWait: true})
	if d.Classify(err) != dialect.ClassLockTimeout || !errors.Is(err, dialect.ErrLockWait) {
		t.Errorf("class %d: %v", d.Classify(err), err)
	}
}

// TestSQLServerLoginsThatFail: the error says what to do, and shows no password.
func TestSQLServerLoginsThatFail(t *testing.T) {
	for number, want := range map[int32]string{
		18456:              "check the URL's names and password",
		cannotOpenDatabase: "check that the database shop exists and is online, and that the login has a user in it",
		40613:              "check that the database runs there",
	} {
		p := newTDSPeer(t, func(sent string) []byte {
			if strings.HasPrefix(sent, "login") {
				return failure(number, 14)
			}
			return nil
		})
		_, _, err := Open(t.Context(), p.url(""), Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%d: %v", number, err)
		}
	}
	p := newTDSPeer(t, func(string) []byte { return nil })
	_, _, err := Open(t.Context(), strings.Replace(p.url(""), "disable", "true", 1), Options{})
	wantNext(t, err, rowfeed.Failed, "TrustServerCertificate")
}

// TestSQLServerDatabaseMustMeetRequirements (H23): without one of them, rowfeed's tables are not made.
func TestSQLServerDatabaseMustMeetRequirements(t *testing.T) {
	const edition = 3
	met := []any{"shop", 1, 1, 130, "DISABLED", edition, 14}
	for _, c := range []struct {
		at    int
		value any
		want  string
	}{
		{0, "shop", ""},
		{1, 0, "run ALTER DATABASE [shop] SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE"},
		{2, 0, "run ALTER DATABASE [shop] SET ALLOW_SNAPSHOT_ISOLATION ON"},
		{2, 3, "run ALTER DATABASE [shop] SET ALLOW_SNAPSHOT_ISOLATION ON"}, // not on for all transactions yet
		{3, 120, "run ALTER DATABASE [shop] SET COMPATIBILITY_LEVEL = 130"},
		{4, "FORCED", "run ALTER DATABASE [shop] SET DELAYED_DURABILITY = ALLOWED"},
		{4, "ALLOWED", ""},
		{6, 13, "its version is 13"},
	} {
		facts := slices.Clone(met)
		facts[c.at] = c.value
		pool, p := openPeer(t, func(sent string) []byte {
			if strings.Contains(sent, "is_read_committed_snapshot_on") {
				return row(facts...)
			}
			return nil
		})
		ran := false
		err := sqlserver.New().WithSchemaLock(t.Context(), pool, dialect.Names{Schema: "dbo", Prefix: "rowfeed_"},
			func(dialect.Querier) error {
				ran = true
				return nil
			})
		if c.want == "" {
			if err != nil || !ran {
				t.Errorf("%v: %v", facts, err)
			}
			continue
		}
		if !errors.Is(err, rowfeed.Refused) || !strings.Contains(err.Error(), c.want) || ran {
			t.Errorf("%v: %v", facts, err)
		}
		if sent := p.requests(); sent[len(sent)-1] != "rollback" {
			t.Errorf("%v: sent %q", facts, sent)
		}
	}
	// A service of Azure has a version of its own.
	facts := slices.Clone(met)
	facts[5], facts[6] = 5, 12
	pool, _ := openPeer(t, func(sent string) []byte {
		if strings.Contains(sent, "is_read_committed_snapshot_on") {
			return row(facts...)
		}
		return nil
	})
	if err := sqlserver.New().WithSchemaLock(t.Context(), pool, dialect.Names{Schema: "dbo"},
		func(dialect.Querier) error { return nil }); err != nil {
		t.Error(err)
	}
}

// TestSQLServerMirrorOfIdentityIsRefused (H23): the server fills an IDENTITY column, so a mirror cannot write its keys.
func TestSQLServerMirrorOfIdentityIsRefused(t *testing.T) {
	for identity, want := range map[int]string{0: "", 1: "gives key column \"id\" its values"} {
		pool, _ := openPeer(t, func(sent string) []byte {
			switch {
			case strings.Contains(sent, "is_ms_shipped"):
				return row("dbo", "kv", "U", 0, 0, 0, 0, 0, "signature")
			case strings.Contains(sent, "is_read_committed_snapshot_on"):
				return row("shop", 1, 1, 130, "DISABLED", 3, 14)
			case strings.Contains(sent, "is_identity"):
				return row("id", "bigint", 8, 19, 0, "", 0, 0, "", identity)
			case strings.Contains(sent, "is_unique"):
				return row("kv_key", 1, 0, "id")
			}
			return nil
		})
		_, err := sqlmirror.New(t.Context(), sqlmirror.Config{Pool: pool, Dialect: sqlserver.New(), Table: "kv"})
		if want == "" && err != nil ||
			want != "" && (!errors.Is(err, rowfeed.Refused) || !strings.Contains(err.Error(), want)) {
			t.Errorf("is_identity %d: %v", identity, err)
		}
	}
}

// TestSQLServerURLNamesDatabaseOrInstance: the path names the database, or the instance if there is a parameter
// database.
func TestSQLServerURLNamesDatabaseOrInstance(t *testing.T) {
	for rawURL, want := range map[string]struct {
		host, instance, database string
		port                     uint64
	}{
		"sqlserver://sa:p%2Fw@db.example:1444/shop":                {"db.example", "", "shop", 1444},
		"sqlserver://sa:p%2Fw@db.example/shop":                     {"db.example", "", "shop", 0},
		"SQLServer://sa:p%2Fw@/shop":                               {"127.0.0.1", "", "shop", 1433},
		"sqlserver://sa:p%2Fw@db.example/EXPRESS?Database=shop":    {"db.example", "EXPRESS", "shop", 0},
		"sqlserver://sa:p%2Fw@[::1]:1444/my%20shop?dial+timeout=3": {"::1", "", "my shop", 1444},
		"sqlserver://sa:p%2Fw@db.example:1/shop?dial%20timeout=3":  {"db.example", "", "shop", 1},
	} {
		config, err := sqlServerConfig(rawURL)
		timeout := connectTimeout
		if strings.Contains(rawURL, "timeout=3") {
			timeout = 3 * time.Second
		}
		if err != nil || config.Host != want.host || config.Instance != want.instance ||
			config.Database != want.database || config.Port != want.port || config.User != "sa" ||
			config.Password != "p/w" || config.AppName != "rowfeed" || config.DialTimeout != timeout {
			t.Errorf("%s: %+v (%v)", rawURL, config, err)
		}
	}
}

// TestSQLServerConnectStops: a handshake ends when its caller gives up.
func TestSQLServerConnectStops(t *testing.T) {
	waiting := make(chan struct{})
	end := make(chan struct{})
	p := newTDSPeer(t, func(string) []byte {
		close(waiting)
		<-end
		return []byte{}
	})
	t.Cleanup(func() { close(end) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-waiting
		cancel()
	}()
	if _, _, err := Open(ctx, p.url("&dial+timeout=600"), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
