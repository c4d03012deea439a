package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/service"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// TestRelayOnceDeliversToEachKindOfReceiver (S7): `relay --once` delivers to stdout, a webhook and a mirror, each with
// a cursor of its own.
func TestRelayOnceDeliversToEachKindOfReceiver(t *testing.T) {
	s := withFeed(t)
	const first = `{"position":"1","shard":0,"op":"upsert","key":{"id":1},"row":{"id":1,"ns":"","k":"fred","v":"jim"}}`
	if out := s.ok("relay kv --to stdout: --once"); !strings.HasPrefix(out, first+"\n") ||
		strings.Count(out, "\n") != 3 {
		t.Errorf("stdout: %s", out)
	}
	s.prints("relay kv --to stdout --once", "")

	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("hunter2hunter2"))
	verify, err := webhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := verify.Verify(body, r.Header); err != nil {
			t.Error(err)
		}
		if strings.Contains(string(body), `"op":"delete"`) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		bodies = append(bodies, string(body))
	}))
	defer hook.Close()
	s.env["HOOK"], s.env["SECRET"] = hook.URL+"/hunter2", secret
	got := s.fails(cli.ExitFailed, "relay kv --to env:HOOK --secret env:SECRET --once")
	if !strings.Contains(got, "--allow-private") || strings.Contains(got, "hunter2") {
		t.Errorf("without --allow-private: %s", got)
	}
	s.prints("relay kv --to env:HOOK --secret env:SECRET --allow-private --consumer hook --once", "")
	if len(bodies) != 1 || !strings.Contains(bodies[0], first) {
		t.Errorf("the webhook got %q", bodies)
	}

	s.sql("DELETE FROM kv WHERE id = 2")
	s.ok("publish --once")
	once := "relay kv --to env:HOOK --secret env:SECRET --allow-private --consumer hook --once"
	if got := s.fails(cli.ExitFailed, once); !strings.Contains(got, `key {"id":2} was refused 5 times`) {
		t.Errorf("refused: %s", got)
	}
	// Stderr also has the error.
	if r := s.run(strings.Fields(once + " --set-aside")...); r.code != cli.ExitDone || !strings.Contains(r.err, "422") {
		t.Errorf("set aside: %+v", r)
	}
	if out := s.ok("dead list hook"); !strings.Contains(out, `{"id":2}`) {
		t.Errorf("dead letters: %s", out)
	}

	copied, err := s.openCopy()
	if err != nil {
		t.Fatal(err)
	}
	s.prints("relay kv --to sqlite:copy.db?table=kv --once", "")
	got = copied("SELECT group_concat(id || v, ' ') FROM (SELECT id, coalesce(v, '-') v FROM kv ORDER BY id)")
	if got != "1jim 3x" {
		t.Errorf("the mirror has %s", got)
	}
	if got := s.ok("consumer list --json --db sqlite:copy.db"); !strings.Contains(got, `"consumer": "sqlite-`) {
		t.Errorf("the mirror's consumers: %s", got)
	}
}

// openCopy makes the database of a mirror. It returns a function that reads the first value of a query.
func (s *shell) openCopy() (func(query string) string, error) {
	s.t.Helper()
	pool, _, err := open.Open(s.t.Context(), "sqlite:copy.db", open.Options{})
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() { pool.Close() })
	if _, err := pool.Exec(createKV); err != nil {
		return nil, err
	}
	return func(query string) (v string) {
		if err := pool.QueryRow(query).Scan(&v); err != nil {
			s.t.Error(err)
		}
		return v
	}, nil
}

// TestRelayErrorsShowNoSecret (S7): each wrong option is named, and no message shows a secret.
func TestRelayErrorsShowNoSecret(t *testing.T) {
	s := withFeed(t)
	for line, want := range map[string]string{
		"relay kv":                                           "--to is missing",
		"relay kv --to nowhere://hunter2":                    "not the URL of a receiver",
		"relay kv --to env:NONE":                             `no variable "NONE"`,
		"relay kv --to https://e.example --secret hunt!":     "not base64",
		"relay kv --to sqlite:rowfeed.db --once":             "?table=NAME",
		"relay kv --to sqlite:rowfeed.db?table=kv --once":    "own table",
		"relay kv --to stdout: --once --limit 100000":        "limit",
		"relay kv --to stdout: --once --after yesterday":     "is not a cursor",
		"relay kv --to stdout: --once --lease 1ms":           "must be from",
		"relay kv --to stdout: --once --lease -1s":           "must be from",
		"relay kv --to stdout: --shard-count 2":              "no order",
		"relay kv --to sqlite:m.db?table=m --shard-count 2":  "whole feed",
		"relay kv --to https://e.example --shard-count 1025": "data shard",
		"relay kv --to https://e.example --shard-count -1":   "--shard-count -1 is not between",
		"relay kv --to stdout: --once --consumer ?":          "name cannot be used",
		"relay kv --to kafka://me:hunter2@h:9092/t?x=y":      `no parameter "x"`,
		"relay kv --to nats://me:hunter2@h:4222/a.>":         "is not a subject",
		"relay kv --to postgres://u:hunter2@h:x/d?table=a":   "postgres",
	} {
		if got := s.fails(cli.ExitUsage, line); !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s", line, got)
		}
	}
	s.fails(cli.ExitFailed, "relay nosuch --to stdout: --once")
}

// TestRelayClaimLastsAsFlagSays (S7): a claim on the relay's lease lasts as long as --lease says.
func TestRelayClaimLastsAsFlagSays(t *testing.T) {
	s := withFeed(t)
	pool := s.pool()
	var ttl int64
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		err := pool.QueryRow("SELECT expires_at - acquired_at FROM rowfeed_leases " +
			"WHERE name = 'relay:kv:hook' AND renewals = 0").Scan(&ttl)
		if err != nil {
			t.Error(err)
		}
	}))
	defer hook.Close()
	s.prints("relay kv --to "+hook.URL+" --allow-private --consumer hook --once --lease 1h", "")
	if got := time.Duration(ttl) * time.Microsecond; got != time.Hour {
		t.Errorf("the claim lasts %s", got)
	}
}

// TestRelayShardsHaveOwnLeasesAndCursors (S7): a relay of several shards has a lease and a cursor for each.
func TestRelayShardsHaveOwnLeasesAndCursors(t *testing.T) {
	s := withFeed(t)
	s.ok("feed upgrade kv --data-shards 16")
	var mu sync.Mutex
	got := map[string]int{}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			Data struct {
				Entries []struct{ Key struct{ ID int } }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range body.Data.Entries {
			got[fmt.Sprint(e.Key.ID)]++
		}
	}))
	defer hook.Close()
	s.prints("relay kv --to "+hook.URL+" --allow-private --consumer hook --once --shard-count 4 --lease 1h", "")
	if len(got) == 0 {
		t.Error("nothing was delivered")
	}
	for id, n := range got {
		if n != 1 {
			t.Errorf("row %s was delivered %d times", id, n)
		}
	}
	var leases, cursors int
	pool := s.pool()
	err := pool.QueryRow("SELECT count(*) FROM rowfeed_leases " +
		"WHERE name LIKE 'consumer:kv:hook/4/%' AND epoch = 1").Scan(&leases)
	if err != nil || leases != 4 {
		t.Errorf("%d leases, %v", leases, err)
	}
	err = pool.QueryRow("SELECT count(*) FROM rowfeed_cursors " +
		"WHERE consumer = 'hook' AND shard_count = 4 AND epoch = 1").Scan(&cursors)
	if err != nil || cursors != 4 {
		t.Errorf("%d cursors, %v", cursors, err)
	}
}

// TestServeRunsRelaysOfConfigurationFile (S7): the server runs the relays of rowfeed.yaml.
func TestServeRunsRelaysOfConfigurationFile(t *testing.T) {
	s := withFeed(t)
	got := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	defer hook.Close()
	writeFile(t, "rowfeed.yaml",
		"relays:\n  - feed: kv\n    to: env:HOOK\n    consumer: hook\n    allow_private: true\n"+
			"  - feed: kv\n    to: sqlite:copy.db?table=kv\n")
	copied, err := s.openCopy()
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	a, _ := quietApp(t)
	a.Getenv = func(name string) string { return map[string]string{"HOOK": hook.URL}[name] }
	ready, ended := make(chan struct{}), make(chan error, 1)
	a.OnListen = func(string) { close(ready) }
	go func() { ended <- execute(ctx, a, "serve --listen 127.0.0.1:0") }()
	<-ready
	if body := <-got; !strings.Contains(body, `"v":"jim"`) {
		t.Errorf("delivered: %s", body)
	}
	s.sql("UPDATE kv SET v = 'joe' WHERE id = 1")
	if body := <-got; !strings.Contains(body, `"v":"joe"`) {
		t.Errorf("delivered: %s", body)
	}
	for deadline := time.Now().Add(time.Minute); copied("SELECT count(*) FROM kv WHERE v = 'joe'") != "1"; {
		if time.Now().After(deadline) {
			t.Fatal("the mirror does not follow")
		}
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	writeFile(t, "rowfeed.yaml", "relays:\n  - feed: kv\n    to: 'stdout:'\n  - feed: kv\n    to: stdout\n")
	serve := "serve --listen 127.0.0.1:0"
	if got := s.fails(cli.ExitFailed, serve); !strings.Contains(got, `have the consumer "stdout"`) {
		t.Errorf("two of one name: %s", got)
	}
	writeFile(t, "rowfeed.yaml", "relays:\n  - feed: kv\n    to: env:HOOK\n    shard_count: 1.5\n")
	fraction := "rowfeed.yaml:4: relays[0].shard_count: 1.5 is not a whole number"
	if got := s.fails(cli.ExitFailed, serve); !strings.Contains(got, fraction) {
		t.Errorf("a fraction of a shard: %s", got)
	}
	writeFile(t, "rowfeed.yaml", "relays:\n  - feed: kv\n")
	if got := s.fails(cli.ExitFailed, serve); !strings.Contains(got, "relays[0]: the key to is missing") {
		t.Errorf("without to: %s", got)
	}
}

// TestServeDeliversOutboxRecords: the server moves outbox records, and a relay of rowfeed.yaml delivers them, each
// shard in its order.
func TestServeDeliversOutboxRecords(t *testing.T) {
	s := newShell(t)
	s.sql("CREATE TABLE ev (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, v TEXT)")
	s.ok("init")
	s.ok("feed add ev --table ev --mode outbox --capture trigger --shard-column customer")
	got := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	}))
	defer hook.Close()
	writeFile(t, "rowfeed.yaml",
		"relays:\n  - feed: ev\n    to: env:HOOK\n    consumer: hook\n    allow_private: true\n    shard_count: 2\n")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	a, _ := quietApp(t)
	a.Getenv = func(name string) string { return map[string]string{"HOOK": hook.URL}[name] }
	ready, ended := make(chan struct{}), make(chan error, 1)
	a.OnListen = func(string) { close(ready) }
	go func() { ended <- execute(ctx, a, "serve --listen 127.0.0.1:0") }()
	<-ready
	for id, customer := range []int{7, -3, 7} {
		s.sql(fmt.Sprintf("INSERT INTO ev VALUES (%d, %d, 'v%d')", id+1, customer, id+1))
		if body := <-got; !strings.Contains(body, fmt.Sprintf(`"v":"v%d"`, id+1)) ||
			!strings.Contains(body, fmt.Sprintf(`"shard":%d`, customer)) {
			t.Errorf("delivered: %s", body)
		}
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if list := s.ok("consumer list"); !strings.Contains(list, "hook") {
		t.Errorf("consumers: %s", list)
	}
}

// TestServeDoesNotRestartRelayOfOldShardCount (H2, S7): if another process has changed the shard count of a relay, the
// server does not start its own relay again. Otherwise both would change the count by turns.
func TestServeDoesNotRestartRelayOfOldShardCount(t *testing.T) {
	s := withFeed(t)
	s.ok("feed upgrade kv --data-shards 16")
	got := make(chan struct{}, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got <- struct{}{} }))
	defer hook.Close()
	writeFile(t, "rowfeed.yaml",
		"relays:\n  - feed: kv\n    to: env:HOOK\n    consumer: hook\n    allow_private: true\n    lease: 1s\n")
	a, _ := quietApp(t)
	log := newLines(t.Context())
	a.Stderr = log
	a.Getenv = func(name string) string { return map[string]string{"HOOK": hook.URL}[name] }
	db, err := a.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	relays, err := service.Relays(a, db)
	if err != nil {
		t.Fatal(err)
	}
	wait := service.StartRelays(t.Context(), a, db, relays, time.Millisecond)
	<-got
	pool := s.pool()
	divided := func() (n int, err error) {
		err = pool.QueryRow("SELECT count(*) FROM rowfeed_cursors WHERE consumer = 'hook' AND shard_count = 4").Scan(&n)
		return n, err
	}
	changed := make(chan error, 1)
	go func() { // gives the relay an entry: an idle relay reads its cursor only every ten seconds
		for {
			if n, err := divided(); err != nil || n == 4 {
				if err == nil {
					_, err = pool.Exec("UPDATE kv SET v = 'joe' WHERE id = 1")
				}
				if f, failed := db.Feed(context.Background(), "kv"); failed == nil && err == nil {
					_, err = f.Publish(context.Background())
				}
				changed <- err
				return
			}
		}
	}()
	ended := make(chan error, 1)
	go func() {
		line := "relay kv --to " + hook.URL + " --allow-private --consumer hook --once --shard-count 4"
		if r := s.run(strings.Fields(line)...); r.code != cli.ExitDone {
			ended <- fmt.Errorf("exit code %d: %s", r.code, r.err)
			return
		}
		wait()
		ended <- <-changed
	}()
	for over := false; !over; {
		select {
		case err := <-ended:
			if over = true; err != nil {
				t.Fatal(err)
			}
		case line := <-log.c:
			if strings.Contains(line, "and is started again") {
				t.Fatal(line)
			}
		}
	}
	if n, err := divided(); err != nil || n != 4 {
		t.Errorf("%d cursors, %v", n, err)
	}
}

// TestWaitingRelayNamesHolder (S7): `relay --once` names the process that it waits for, and does not wait for a paused
// relay.
func TestWaitingRelayNamesHolder(t *testing.T) {
	s := withFeed(t)
	s.ok("feed upgrade kv --data-shards 16")
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer hook.Close()
	a, _ := quietApp(t)
	db, err := a.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i, c := range []struct{ lease, says string }{
		{relay.LeaseName("hook", "kv"), `msg="standing by: another process delivers"`},
		{admin.JobLease(admin.ConsumerGroup("hook", "kv"), 2, 1),
			`msg="waiting for a shard that another process holds"`},
	} {
		once := fmt.Sprintf("relay kv --to %s --allow-private --consumer hook --shard-count %d --once", hook.URL, i+1)
		s.prints(once, "")
		claim, err := db.Lease(c.lease, time.Hour).TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		holder := hostAndPID(claim.Owner())
		if out := s.ok("consumer list hook -o wide"); !strings.Contains(out, holder) {
			t.Errorf("the holder is not listed: %s", out)
		}
		if out := s.ok("status kv"); !strings.Contains(out, ", at "+holder+" since ") {
			t.Errorf("status does not name the holder: %s", out)
		}
		s.ok("consumer pause hook")
		got := s.fails(cli.ExitFailed, once)
		if strings.Count(got, c.says) != 1 || !strings.Contains(got, claim.Owner()) ||
			!strings.Contains(got, "it is paused") {
			t.Errorf("of %d shards: %s", i+1, got)
		}
		s.ok("consumer resume hook")
		if err := claim.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.ok("feed bump kv")
	if out := s.ok("status kv"); !strings.Contains(
		out,
		"kv: consumer hook, shard 1 of 2, cannot be compared (another generation, ",
	) {
		t.Errorf("status of a consumer of another generation: %s", out)
	}
}

// TestFailingRelayIsShown (M72): `status` and `consumer list` show a relay that has failed, with its error and its
// receiver, whose password, path and query are nowhere. The console's list of states has one word for it.
func TestFailingRelayIsShown(t *testing.T) {
	s := withFeed(t)
	away := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	host := strings.TrimPrefix(away.URL, "http://")
	away.Close()
	s.fails(cli.ExitFailed, "relay kv --to http://me:hunter2secret@"+host+
		"/hook/pathsecret5?token=opensesame77&code=codesecret6 --allow-private --consumer hook --once")
	for _, command := range []string{"status kv", "consumer list hook", "status kv --json", "consumer list --json"} {
		out := s.ok(command)
		for _, part := range []string{"failed to process a batch", "http://" + host} {
			if !strings.Contains(out, part) {
				t.Errorf("%s lacks %q: %s", command, part, out)
			}
		}
		if strings.Contains(out, "hunter2secret") || strings.Contains(out, "opensesame77") ||
			strings.Contains(out, "pathsecret5") || strings.Contains(out, "codesecret6") {
			t.Errorf("%s shows a secret: %s", command, out)
		}
	}
	if out := s.ok("consumer list hook"); !strings.Contains(out, "failing") ||
		!strings.Contains(out, "hook of kv: failing since 20") ||
		!strings.Contains(out, "1 attempt, and not tried again") {
		t.Error(out)
	}
}
