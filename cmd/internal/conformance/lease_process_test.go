package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func init() {
	for name, work := range map[string]func(context.Context, *sql.DB, *rowfeed.DB) error{"lease holder": holdForEver, "lease writer": writeWhenTold} {
		testdb.RegisterChild(name, func() {
			if err := leasing(work); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		})
	}
}

// leasing opens the database of the environment for a child.
func leasing(work func(context.Context, *sql.DB, *rowfeed.DB) error) error {
	url := os.Getenv("URL")
	pool, err := testdb.OpenURL(url, (&quiet{file: os.Getenv("QUIET")}).hooks())
	if err != nil {
		return err
	}
	defer pool.Close()
	d, err := open.Dialect(url)
	if err != nil {
		return err
	}
	ctx := context.Background()
	rf, err := rowfeed.Open(ctx, pool, d, nil)
	if err != nil {
		return err
	}
	return work(ctx, pool, rf)
}

// holdForEver holds the lease until it is killed; anew, where a slow machine has lost it.
func holdForEver(ctx context.Context, _ *sql.DB, rf *rowfeed.DB) error {
	for {
		err := rf.Lease("job", 3*time.Second).Hold(ctx, func(ctx context.Context, t *rowfeed.Term) error {
			fmt.Println("holding", t.Epoch())
			<-ctx.Done()
			return ctx.Err()
		})
		if !isCode(err, rowfeed.LeaseLost) {
			return err
		}
	}
}

// writeWhenTold acquires the lease, and writes once there is a row in signals. Where
// an open transaction keeps nobody else from writing it has one open by then.
func writeWhenTold(ctx context.Context, pool *sql.DB, rf *rowfeed.DB) error {
	t, err := rf.Lease("job", time.Second).TryAcquire(ctx)
	if err != nil {
		return err
	}
	var tx *sql.Tx
	begin := func() (err error) {
		if tx, err = pool.BeginTx(ctx, nil); err == nil {
			_, err = tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO effects VALUES (%d)", t.Epoch()))
		}
		return err
	}
	early := os.Getenv("EARLY") != ""
	if early {
		if err := begin(); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	for told := 0; told == 0; rest(ctx, 5*time.Millisecond) {
		if err := pool.QueryRowContext(ctx, "SELECT count(*) FROM signals").Scan(&told); err != nil {
			return err
		}
	}
	if !early {
		if err := begin(); err != nil {
			return err
		}
	}
	if err := t.Assert(ctx, rowfeed.InTx(tx)); err != nil {
		fmt.Println("refused:", err)
		return tx.Rollback()
	}
	fmt.Println("written")
	return tx.Commit()
}

// TestLeaseHolderKilled (M51): the holder is killed with SIGKILL. Another one, which
// waits, takes over, and not before the term of the first has ended.
func TestLeaseHolderKilled(t *testing.T) {
	t.Parallel()
	each(t, func(x *env) {
		c := testdb.CrashChild(x.T, "lease holder", "URL="+x.db.URL)
		holder := &program{c, []string{"", "lease holder"}}
		x.waitFor(holder, regexp.MustCompile(`holding \d+`))
		x.eventually("it renews", func() bool { x.wantAlive(holder); return x.job().Renewals > 0 })
		c.Kill()
		was, end := x.job(), x.scalar("SELECT expires_at FROM rowfeed_leases")
		term, err := x.rf.Lease("job", long).Acquire(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		if begin := x.scalar("SELECT acquired_at FROM rowfeed_leases"); begin < end || term.Epoch() != was.Epoch+1 {
			x.Errorf("epoch %d at %d; epoch %d ended at %d", term.Epoch(), begin, was.Epoch, end)
		}
	})
}

// TestLeaseHolderPaused (M54, H3): the holder is stopped with SIGSTOP until after
// its term has ended and another has written. When it goes on it knows nothing of that,
// and its write fails.
func TestLeaseHolderPaused(t *testing.T) {
	t.Parallel()
	each(t, func(x *env) {
		x.exec("CREATE TABLE effects (epoch BIGINT)", "CREATE TABLE signals (id BIGINT)")
		early := "EARLY=1"
		if x.family() == "sqlite" {
			early = "EARLY="
		}
		c := testdb.CrashChild(x.T, "lease writer", "URL="+x.db.URL, early)
		paused := &program{c, []string{"", "lease writer"}}
		x.waitFor(paused, regexp.MustCompile("ready"))
		if err := syscall.Kill(c.PID(), syscall.SIGSTOP); err != nil {
			x.Fatal(err)
		}
		x.awaitExpiry()
		term := x.acquire(x.rf.Lease("job", long))
		tx := x.begin(sql.LevelReadCommitted)
		x.in(tx, fmt.Sprintf("INSERT INTO effects VALUES (%d)", term.Epoch()))
		if err := term.Assert(x.ctx, rowfeed.InTx(tx)); err != nil {
			x.Error(err)
		}
		x.commit(tx)
		x.exec("INSERT INTO signals VALUES (1)")
		if err := syscall.Kill(c.PID(), syscall.SIGCONT); err != nil {
			x.Fatal(err)
		}
		outcome := x.waitFor(paused, regexp.MustCompile(`(refused|written).*`))
		if outcome[1] != "refused" {
			x.Error("the paused holder wrote")
		}
		c.WaitMarker(x.ctx)
		if n, epochs := x.scalar("SELECT count(*) FROM effects"), x.scalar("SELECT min(epoch) FROM effects"); n != 1 || epochs != term.Epoch() {
			x.Errorf("%d effects from epoch %d, want one of epoch %d", n, epochs, term.Epoch())
		}
	})
}
