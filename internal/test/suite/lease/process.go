package lease

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
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func init() {
	for name, work := range map[string]func(context.Context, *sql.DB, *rowfeed.DB) error{
		"lease holder": holdForEver, "lease writer": writeWhenTold,
	} {
		testdb.RegisterChild(name, func() {
			if err := suite.Leasing(work); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		})
	}
}

// holdForEver holds the lease until its process is killed. It acquires the lease again if a slow machine loses it.
func holdForEver(ctx context.Context, _ *sql.DB, rf *rowfeed.DB) error {
	for {
		err := rf.Lease("job", 3*time.Second).Hold(ctx, func(ctx context.Context, c *rowfeed.Claim) error {
			fmt.Println("holding", c.Epoch())
			<-ctx.Done()
			return ctx.Err()
		})
		if !suite.IsCode(err, rowfeed.LeaseLost) {
			return err
		}
	}
}

// writeWhenTold acquires the lease, and writes when the table signals has a row. Unless an open transaction locks out
// other writers, its transaction is open by then.
func writeWhenTold(ctx context.Context, pool *sql.DB, rf *rowfeed.DB) error {
	c, err := rf.Lease("job", time.Second).TryAcquire(ctx)
	if err != nil {
		return err
	}
	var tx *sql.Tx
	begin := func() (err error) {
		if tx, err = pool.BeginTx(ctx, nil); err == nil {
			_, err = tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO effects VALUES (%d)", c.Epoch()))
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
	for told := 0; told == 0; suite.Rest(ctx, 5*time.Millisecond) {
		if err := pool.QueryRowContext(ctx, "SELECT count(*) FROM signals").Scan(&told); err != nil {
			return err
		}
	}
	if !early {
		if err := begin(); err != nil {
			return err
		}
	}
	if err := c.Assert(ctx, rowfeed.InTx(tx)); err != nil {
		fmt.Println("refused:", err)
		return tx.Rollback()
	}
	fmt.Println("written")
	return tx.Commit()
}

// TestTakeoverWaitsForKilledHolder (M51): the holder is killed with SIGKILL. A process that waits acquires the lease,
// and not before the claim has ended.
func TestTakeoverWaitsForKilledHolder(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		c := testdb.CrashChild(x.T, "lease holder", "URL="+x.DB.URL)
		holder := &suite.Program{Child: c, Args: []string{"", "lease holder"}}
		x.WaitFor(holder, regexp.MustCompile(`holding \d+`))
		x.Eventually("the holder renews", func() bool { x.WantAlive(holder); return job(x).Renewals > 0 })
		c.Kill()
		was, end := job(x), x.Scalar("SELECT expires_at FROM rowfeed_leases")
		claim, err := x.RF.Lease("job", suite.Long).Acquire(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		if begin := x.Scalar("SELECT acquired_at FROM rowfeed_leases"); begin < end || claim.Epoch() != was.Epoch+1 {
			x.Errorf("epoch %d at %d; epoch %d ended at %d", claim.Epoch(), begin, was.Epoch, end)
		}
	})
}

// TestPausedHolderCannotWrite (M54, H3): the holder is stopped with SIGSTOP until its claim has ended and another
// process has written. When it continues, its write fails.
func TestPausedHolderCannotWrite(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE effects (epoch BIGINT)", "CREATE TABLE signals (id BIGINT)")
		early := "EARLY=1"
		if x.Has.OneWriter {
			early = "EARLY="
		}
		c := testdb.CrashChild(x.T, "lease writer", "URL="+x.DB.URL, early)
		paused := &suite.Program{Child: c, Args: []string{"", "lease writer"}}
		x.WaitFor(paused, regexp.MustCompile("ready"))
		if err := syscall.Kill(c.PID(), syscall.SIGSTOP); err != nil {
			x.Fatal(err)
		}
		awaitExpiry(x)
		claim := acquireLease(x, x.RF.Lease("job", suite.Long))
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, fmt.Sprintf("INSERT INTO effects VALUES (%d)", claim.Epoch()))
		if err := claim.Assert(x.Ctx, rowfeed.InTx(tx)); err != nil {
			x.Error(err)
		}
		x.Commit(tx)
		x.Exec("INSERT INTO signals VALUES (1)")
		if err := syscall.Kill(c.PID(), syscall.SIGCONT); err != nil {
			x.Fatal(err)
		}
		outcome := x.WaitFor(paused, regexp.MustCompile(`(refused|written).*`))
		if outcome[1] != "refused" {
			x.Error("the paused holder wrote")
		}
		c.WaitMarker(x.Ctx)
		n, epochs := x.Scalar("SELECT count(*) FROM effects"), x.Scalar("SELECT min(epoch) FROM effects")
		if n != 1 || epochs != claim.Epoch() {
			x.Errorf("%d effects from epoch %d, want one of epoch %d", n, epochs, claim.Epoch())
		}
	})
}
