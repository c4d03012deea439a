package open

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/dialect/sqlserver"
)

// TestSilentPortTimesOut has a port that accepts connections and never answers.
func TestSilentPortTimesOut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var taken []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			taken = append(taken, conn)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
		for _, conn := range taken {
			conn.Close()
		}
	})
	at := listener.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // in case nothing bounds the handshake
	defer cancel()
	for _, rawURL := range []string{
		"mysql://u:hunter22@" + at + "/d?timeout=200ms", "postgres://u:hunter22@" + at + "/d?connect_timeout=1",
		"sqlserver://u:hunter22@" + at + "/d?dial+timeout=1",
	} {
		_, _, err := Open(ctx, rawURL, Options{})
		wantNext(t, err, rowfeed.Unavailable, "check that the database runs there")
		if text := err.Error(); !strings.Contains(text, "did not answer in time") || !strings.Contains(text, at) ||
			strings.Contains(text, "hunter") {
			t.Errorf("%s: %s", rawURL, text)
		}
	}
	// At run time, dialects classify it as a failed connection, and it is retried.
	for _, d := range []*dialect.Dialect{mysql.New(), postgres.New(), sqlserver.New()} {
		if got := d.Classify(errors.Join(silence{})); got != dialect.ClassConnection {
			t.Errorf("%s: class %d", d.Name, got)
		}
	}
}

// TestConnectTimeoutIsTenSecondsByDefault: the timeout is ten seconds by default, else that of the URL, or for
// PostgreSQL of the environment.
func TestConnectTimeoutIsTenSecondsByDefault(t *testing.T) {
	for rawURL, want := range map[string]time.Duration{
		"mysql://u@h/d": connectTimeout, "mysql://u@h/d?timeout=3s": 3 * time.Second, "mysql://u@h/d?timeout=0s": 0,
	} {
		config, err := mysqlConfig(rawURL)
		if err != nil || config.Timeout != want {
			t.Errorf("%s: %v (%v), want %s", rawURL, config.Timeout, err, want)
		}
	}
	wantPostgres := func(rawURL string, want time.Duration) {
		t.Helper()
		config, err := postgresConfig(rawURL)
		if err != nil || config.ConnectTimeout != want {
			t.Errorf("%s: %v (%v), want %s", rawURL, config.ConnectTimeout, err, want)
		}
	}
	wantPostgres("postgres://u@h/d", connectTimeout)
	wantPostgres("postgres://u@h/d?connect_timeout=3", 3*time.Second)
	wantPostgres("postgres://u@h/d?connect_timeout=0", 0)
	t.Setenv("PGCONNECT_TIMEOUT", "7")
	wantPostgres("postgres://u@h/d", 7*time.Second)
}
