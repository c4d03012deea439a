package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

// meeting is a source that does something before the first page of a shard that is asked for with
// a cursor in place, and lists few of its shards.
type meeting struct {
	*rowfeed.Feed
	shard int
	made  func() bool
	once  sync.Once
	meet  func()
}

func (m *meeting) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	if shard, _ := req.Shards.Numbers(); shard == m.shard && m.made() {
		m.once.Do(m.meet)
	}
	return m.Feed.Fetch(ctx, req)
}

func (m *meeting) Info(ctx context.Context) (*rowfeed.Info, error) { return few(ctx, m.Feed) }

// few is a description as of a feed with more shards than one lists.
func few(ctx context.Context, f *rowfeed.Feed) (*rowfeed.Info, error) {
	info, err := f.Info(ctx)
	if err == nil {
		info.ShardIDs, info.MoreShardIDs = info.ShardIDs[:1], true
	}
	return info, err
}

type fewListed struct{ plain }

func (p fewListed) Info(ctx context.Context) (*rowfeed.Info, error) { return few(ctx, p.f) }

// TestShardIDsStartAtOnce (guarantee 1): where a consumer begins is looked up for all shards before any
// has its turn, also for those that a description does not list: what is written before the last one has had it
// comes, what was there does not.
func TestShardIDsStartAtOnce(t *testing.T) {
	eachKind(t, func(r *taker) {
		for shard := 1; shard <= 3; shard++ {
			r.add(shard, shard, shard)
			r.headOf(shard) // what waits in an outbox is behind the head
		}
		next := 10
		for name, start := range map[string]rowfeed.Cursor{"now": rowfeed.Now, "later": rowfeed.At(r.now().Add(time.Hour)), "earlier": rowfeed.At(r.now().Add(-time.Hour))} {
			r.exec("DELETE FROM applied")
			was := next
			source := &meeting{Feed: r.feed, shard: 3, made: func() bool { return r.scalar("SELECT count(*) FROM rowfeed_cursors WHERE consumer = '"+name+"'") > 0 }}
			source.meet = func() { r.add(3, next, next); r.headOf(3); next++ }
			c := r.consumer(source, r.rf)
			c.Name, c.Start = name, start
			r.once(c)
			if next != was+1 {
				t.Fatalf("%s: the shard was asked for %d times", name, next-was)
			}
			want := []string{fmt.Sprint("3: ", was)}
			if name == "earlier" {
				want = r.all(next)
			}
			if got := r.applied(); !slices.Equal(got, want) {
				t.Errorf("%s: applied %q, want %q", name, got, want)
			}
		}
		c := r.consumer(fewListed{plain{r.feed}}, r.rf)
		c.Start = rowfeed.Now
		r.wantCode(c.RunOnce(r.ctx), rowfeed.Refused)
		if n := r.scalar("SELECT count(*) FROM rowfeed_consumers WHERE consumer = 'test'"); n != 0 {
			t.Error("a consumer that is refused has begun")
		}
	})
}

// all are the rows of the test above, up to a number.
func (r *taker) all(next int) []string {
	third := "3: 3"
	for id := 10; id < next; id++ {
		third += fmt.Sprint(" ", id)
	}
	return []string{"1: 1", "2: 2", third}
}
