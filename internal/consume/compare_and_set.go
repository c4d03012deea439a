package consume

import (
	"context"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// advance stores the cursor by compare-and-set. If the row has changed, another instance has handled the page, or an
// operator has moved or paused the cursor: everything is rolled back. It runs after the effects, so that the row is
// locked only as long as COMMIT takes.
func (t *batchTx) advance(ctx context.Context, to feedtype.Cursor, aside int64) error {
	db, was := t.a.db, t.a.cursor.row
	next := *was
	next.Value, next.Generation, next.Aside, next.version = to, to.Generation(), was.Aside+aside, was.version+1
	next.Failure = nil
	// The meaning of a cursor depends on shard_count and generation too, so all are compared. Every write
	// increments version: a cursor that was moved and moved back differs, and every database counts the row
	// as affected. A paused consumer stores nothing.
	b := db.builder()
	n, err := t.q.Exec(ctx, "UPDATE "+db.table("cursors")+
		" SET value = "+b.Arg(string(next.Value))+", generation = "+b.Arg(next.Generation)+", aside = "+
		b.Arg(next.Aside)+
		", version = version + 1, "+store.ClearFailure+", updated_at = "+db.now()+
		" WHERE consumer = "+b.Arg(was.Consumer)+" AND feed = "+b.Arg(was.Feed)+" AND shard = "+b.Arg(was.Shard)+
		" AND shard_count = "+b.Arg(was.ShardCount)+
		" AND version = "+b.Arg(was.version)+
		" AND value = "+b.Arg(string(was.Value))+
		" AND generation = "+b.Arg(was.Generation)+
		" AND epoch = "+b.Arg(was.Epoch)+
		" AND aside = "+b.Arg(was.Aside)+
		" AND paused = 0", b.Args()...)
	if err = oneRow(n, err); err != nil {
		return err
	}
	t.next = &next
	return nil
}

// oneRow returns errOvertaken unless a statement has changed exactly one row.
func oneRow(n int64, err error) error {
	if err == nil && n != 1 {
		err = errOvertaken
	}
	return err
}
