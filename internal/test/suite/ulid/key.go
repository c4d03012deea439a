package ulid

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestULIDCanBePrimaryKey (M32, M47): a table's primary key contains the ULID, which is known before the row is
// inserted. Pages, dead letters and their retry identify rows by it.
func TestULIDCanBePrimaryKey(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Exec("CREATE TABLE keyed (shard INT NOT NULL, ulid "+x.ULIDType()+" NOT NULL, PRIMARY KEY (shard, ulid))",
			"CREATE TABLE applied (id VARCHAR(30) NOT NULL PRIMARY KEY)")
		insert := "INSERT INTO keyed (shard, ulid) VALUES (-5, " + x.Dialect.Placeholder(1) + ")"
		spec := suite.EventsSpec()
		spec.Name, spec.Table = "keyed", "keyed"
		f := x.Add(spec)
		var want []string
		write := func(rows int) {
			x.Helper()
			tx := x.Begin(sql.LevelReadCommitted)
			u, err := f.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{-5}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range rows {
				id := x.At(u, -5, int64(i))
				if _, err := tx.ExecContext(x.Ctx, insert, id); err != nil {
					t.Fatal(err)
				}
				want = append(want, id.String())
			}
			x.Commit(tx)
		}
		write(3)
		var got []string
		for _, e := range x.Page(f, -5, "", 10).Entries {
			var row struct {
				Shard int
				ULID  any
			}
			if err := e.Decode(&row); err != nil || row.Shard != -5 || row.ULID == nil {
				t.Errorf("%s: %+v, %v", suite.Line(e), row, err)
			}
			got = append(got, e.Position)
		}
		if !slices.Equal(got, want) {
			t.Errorf("positions %q, want %q", got, want)
		}
		var failing atomic.Bool
		failing.Store(true)
		handle := func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				if failing.Load() && e.Position == want[1] {
					return errors.New("the handler refuses this entry")
				}
				id := ulid.MustParse(e.Position)
				if _, err := tx.ExecContext(ctx, "INSERT INTO applied VALUES ('"+id.String()+"')"); err != nil {
					return err
				}
			}
			return nil
		}
		c := &rowfeed.Consumer{
			Name: "test", Source: f, DB: x.RF, OnFailure: rowfeed.SetAside, Handle: handle,
			Options: rowfeed.ConsumerOptions{Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: time.Millisecond}},
		}
		if err := c.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		if got := x.List("SELECT id FROM applied ORDER BY id"); !slices.Equal(got, []string{want[0], want[2]}) {
			t.Errorf("applied %q of %q", got, want)
		}
		failing.Store(false)
		page, err := x.RF.Admin().DeadLetters(x.Ctx, suite.Letters(rowfeed.ConsumerID{Consumer: "test"}, ""))
		letters := page.Letters
		if err != nil || len(letters) != 1 {
			t.Fatalf("dead letters: %+v, %v", letters, err)
		}
		n, err := x.RF.Admin().RetryDeadLetters(x.Ctx,
			suite.Letters(rowfeed.ConsumerID{Consumer: "test"}, string(letters[0].Key)), nil)
		if n != 1 || err != nil {
			t.Errorf("%d dead letters are retried, want 1; %v", n, err)
		}
		write(1)
		if err := c.RunOnce(x.Ctx); err != nil {
			t.Fatal(err)
		}
		if got := x.List("SELECT id FROM applied ORDER BY id"); !slices.Equal(got, want) {
			t.Errorf("applied %q of %q", got, want)
		}
		x.WantSound(f)
	})
}
