package conformance

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
)

// meddled is a source behind whose first page of entries something happens to the cursor.
type meddled struct {
	rowfeed.Source
	once   sync.Once
	meddle func()
}

func (s *meddled) Fetch(ctx context.Context, r rowfeed.Request) (rowfeed.Page, error) {
	page, err := s.Source.Fetch(ctx, r)
	if err == nil && len(page.Entries) > 0 {
		s.once.Do(s.meddle)
	}
	return page, err
}

// TestCursorAwayAndBack (H2): a page in hand is not stored when the cursor has been
// elsewhere in the meantime, though it stands where it stood.
func TestCursorAwayAndBack(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(8), x.receiver()
		x.insertKV(1, 11)
		x.publish(f)
		c := r.consumer(&meddled{Source: f, meddle: func() {
			if n, err := x.rf.Admin().PauseConsumer(x.ctx, shardID(0)); n != 1 || err != nil {
				x.Error(n, err)
			}
			if n, err := x.rf.Admin().ResumeConsumer(x.ctx, shardID(0)); n != 1 || err != nil {
				x.Error(n, err)
			}
		}}, x.rf)
		calls, handle := 0, c.Handle
		c.Handle = func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
			calls++
			return handle(ctx, tx, entries)
		}
		r.once(c)
		if n := x.scalar("SELECT count(*) FROM applied"); n != 10 || calls != 2 {
			x.Errorf("%d entries were applied, by %d calls of the handler", n, calls)
		}
	})
}
