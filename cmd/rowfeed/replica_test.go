package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/terms"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestReplicaServesAndPublishesNothing (H26): with --replica the server of a standby is ready, publishes nothing, and
// refuses no cursor that is ahead of it. Without --replica the commands name the flag.
func TestReplicaServesAndPublishesNothing(t *testing.T) {
	testdb.Postgres15.Require(t)
	primary := testdb.Postgres15.Primary(t)
	replica := primary.Replica(t)
	db := primary.NewDatabase(t)
	db.Exec(t, createServerKV)
	s := newShell(t)
	s.env["ROWFEED_DB"] = db.URL
	s.ok("init")
	s.ok("feed add kv --table kv")
	db.Exec(t, "INSERT INTO kv VALUES (1, 'jim')")
	s.ok("publish --once")
	db.Exec(t, "INSERT INTO kv VALUES (2, 'joe')") // waits for a publisher

	there := db.On(t, replica)
	for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		var waiting int
		err := there.Admin().QueryRow("SELECT count(*) FROM rowfeed_changes_kv").Scan(&waiting)
		if err == nil && waiting == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d changes on the replica: %v", waiting, err)
		}
	}
	for _, line := range []string{"publish --once", "fetch kv --after 5", "feed bump kv"} {
		if got := s.fails(cli.ExitFailed, line+" --db "+there.URL); !strings.Contains(got, "--replica") {
			t.Errorf("%s: %s", line, got)
		}
	}

	a, _ := quietApp(t)
	if err := a.DB.Set(there.URL); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	a.OnListen = func(at string) { address <- at }
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, a, "serve --replica --listen 127.0.0.1:0") }()
	var at string
	select {
	case at = <-address:
	case err := <-ended:
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, want string
		status     int
	}{
		{"/_feeds/fetch/kv?after=", `"cursor":"1.9k3f2c7adq","more":false`, http.StatusOK},
		{"/_feeds/fetch/kv?after=5", `"entries":[],"cursor":"5","more":false`, http.StatusOK},
		{"/_feeds/fetch/kv?after=&consistent=true", "consistent", http.StatusBadRequest},
		{"/readyz", `"ready":true`, http.StatusOK},
	} {
		resp, err := http.Get("http://" + at + c.path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || !strings.Contains(terms.Fix(string(body)), c.want) {
			t.Errorf("%s: %d %s (%v)", c.path, resp.StatusCode, body, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
