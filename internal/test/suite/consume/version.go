package consume

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// meddled is a source that calls a function after its first page with entries.
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

// TestCursorMovedAwayAndBackRefusesPage (H2): a page is not stored if the cursor was moved away and back in the
// meantime, although its value is the same.
func TestCursorMovedAwayAndBackRefusesPage(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		x.InsertKV(1, 11)
		x.Publish(f)
		c := r.Consumer(&meddled{Source: f, meddle: func() {
			if n, err := x.RF.Admin().PauseConsumer(x.Ctx, shardID(0)); n != 1 || err != nil {
				x.Error(n, err)
			}
			if n, err := x.RF.Admin().ResumeConsumer(x.Ctx, shardID(0)); n != 1 || err != nil {
				x.Error(n, err)
			}
		}}, x.RF)
		calls, handle := 0, c.Handle
		c.Handle = func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
			calls++
			return handle(ctx, tx, entries)
		}
		r.Once(c)
		if n := x.Scalar("SELECT count(*) FROM applied"); n != 10 || calls != 2 {
			x.Errorf("%d entries were applied, by %d calls of the handler", n, calls)
		}
	})
}
