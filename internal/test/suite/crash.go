package suite

import (
	"context"
	"database/sql"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Crashing runs a call of the library in a child process. The child blocks before its N-th statement, where the parent
// kills it.
func Crashing(call func(context.Context, *rowfeed.DB) error) error {
	return CrashingOn(func(ctx context.Context, rf *rowfeed.DB, _ *sql.DB) error { return call(ctx, rf) })
}

// CrashingOn is Crashing for a call that needs the pool, too.
func CrashingOn(call func(context.Context, *rowfeed.DB, *sql.DB) error) error {
	n, err := strconv.ParseInt(os.Getenv("N"), 10, 64)
	if err != nil {
		return err
	}
	url := os.Getenv("URL")
	var params []string
	if strings.HasPrefix(url, "mysql:") {
		params = []string{"charset=utf8mb4"} // as in cmd/internal/open: triggers remember it
	}
	pool, err := testdb.OpenURL(url, testdb.BlockAt(n), params...)
	if err != nil {
		return err
	}
	d, err := DialectOf(url)
	if err != nil {
		return err
	}
	ctx := context.Background()
	rf, err := rowfeed.Open(ctx, pool, d, &rowfeed.Config{BatchSize: 2})
	if err != nil {
		return err
	}
	return call(ctx, rf, pool)
}

// Killed runs a child, kills it before its n-th statement, and returns this statement without its number. It returns ""
// if the child ended before.
func (x *Env) Killed(child string, n int, more ...string) (before string) {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.Ctx, Patience())
	defer cancel()
	c := testdb.CrashChild(
		x.T,
		child,
		append(more, "URL="+x.DB.URL, "N="+strconv.Itoa(n), "CAPTURE="+string(x.Capture))...)
	blocked := c.WaitMarker(ctx)
	c.Kill()
	if !blocked {
		return ""
	}
	_, statement, _ := strings.Cut(strings.TrimSpace(c.Output()), ": ")
	return statement
}

// Kills returns the statements before which a crash test kills its child: number first, and then every step-th one.
// With ROWFEED_TEST_EVERY_KILL=1, that is every statement. Without it, that is every seventh one, and the seed gives
// the first.
func (x *Env) Kills() (first, step int) {
	if os.Getenv("ROWFEED_TEST_EVERY_KILL") == "1" {
		return 1, 1
	}
	return 1 + int(RaceSeed(x.T)%7), 7
}

// Tapped opens the feed kv on a pool of its own, whose statements call the hooks.
func (x *Env) Tapped(h testdb.Hooks, cfg *rowfeed.Config) *rowfeed.Feed {
	x.Helper()
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, h), x.Dialect, cfg)
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.Ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// Patience is how long Eventually waits: long enough for a busy machine. With mutants, some conditions never become
// true, so it is shorter.
func Patience() time.Duration {
	if os.Getenv("ROWFEED_TEST_EVERY_KILL") == "1" {
		return time.Minute
	}
	return 5 * time.Minute
}

// Eventually polls a condition that must come true.
func (x *Env) Eventually(what string, ok func() bool) {
	x.Helper()
	begun := time.Now()
	for !ok() {
		if took := time.Since(begun); took > Patience() {
			x.Fatalf("not true after %s: %s", took.Round(time.Second), what)
		}
		Rest(x.Ctx, 2*time.Millisecond)
	}
}

// Rest waits for d or for the end of ctx.
func Rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
