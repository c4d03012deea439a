package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

const groupJobs = 32

// groupMember is a member of a group. It has a pool of its own, and counts what it sends there, including BEGIN and
// COMMIT.
type groupMember struct {
	db    *rowfeed.DB
	sent  *atomic.Int64
	cut   atomic.Bool // for the database, the member has died
	stop  context.CancelFunc
	ended chan error
}

var errCut = errors.New("cut off")

func (b *bed) groupMember(sent *atomic.Int64) *groupMember {
	m := &groupMember{sent: sent, ended: make(chan error, 1)}
	m.db = b.Rowfeed(b.OpenTapped(b.T, testdb.Hooks{Before: func(context.Context, testdb.TapEvent) error {
		if m.cut.Load() {
			return errCut
		}
		m.sent.Add(1)
		return nil
	}}), nil)
	return m
}

func (m *groupMember) run(b *bed, run func(ctx context.Context) error) {
	ctx, stop := context.WithCancel(b.Context())
	m.stop = stop
	go func() { m.ended <- run(ctx) }()
}

func untilAsked(ctx context.Context, j *rowfeed.Job) error {
	select {
	case <-ctx.Done():
	case <-j.HandOver():
	}
	return nil
}

// balanced reports whether so many members hold all jobs, in shares that differ by one at most.
func (b *bed) balanced(members int) bool {
	rows, err := b.Admin().QueryContext(b.Context(), "SELECT count(*) FROM rowfeed_leases WHERE expires_at > "+
		b.Dialect.Now+
		" AND name NOT LIKE '%seat%' GROUP BY "+map[string]string{
		"sqlite":   "substr(owner, 1, length(owner) - 27)",
		"postgres": "left(owner, length(owner) - 27)",
		"mysql":    "left(owner, length(owner) - 27)",
	}[b.Engine.Family])
	b.Must(err)
	defer rows.Close()
	least, most, all, n := groupJobs, 0, 0, 0
	for rows.Next() {
		var has int
		b.Must(rows.Scan(&has))
		least, most, all, n = min(least, has), max(most, has), all+has, n+1
	}
	b.Must(rows.Err())
	return n == members && all == groupJobs && most-least <= 1
}

// TestGroups measures how long it takes until 32 jobs are shared evenly again after an instance has joined, left or
// died, in multiples of the leases' time to live.
func TestGroups(t *testing.T) {
	ttl, most := 10*time.Second, 8
	if testing.Short() {
		ttl, most = time.Second, 2
	}
	out := table{Title: "32 jobs shared evenly again, in terms (of 10 s), after an instance",
		Head: []string{"database", "instances", "came", "left", "died"}}
	each(t, func(b *bed) {
		var sent atomic.Int64
		b.Rowfeed(b.Pool, nil)
		came, left, died := figures[int]{}, figures[int]{}, figures[int]{}
		for range *reps {
			var members []*groupMember
			even := func(to figures[int], do func()) {
				started := time.Now()
				do()
				for !b.balanced(len(members)) {
					time.Sleep(5 * time.Millisecond)
				}
				to.Add(len(members), time.Since(started).Seconds()/ttl.Seconds())
				time.Sleep(ttl / 5) // at any time between two heartbeats
			}
			last := func() *groupMember {
				m := members[len(members)-1]
				members = members[:len(members)-1]
				return m
			}
			join := func() {
				m := b.groupMember(&sent)
				m.run(b,
					func(ctx context.Context) error { return m.db.Group("g", groupJobs, ttl).Run(ctx, untilAsked) })
				members = append(members, m)
			}
			for len(members) < most {
				even(came, join)
			}
			for len(members) > 1 {
				even(died, func() {
					m := last()
					m.cut.Store(true)
					m.stop()
				})
				even(came, join)
				even(left, func() {
					m := last()
					m.stop()
					b.Must(<-m.ended)
				})
			}
			members[0].stop()
			b.Must(<-members[0].ended)
		}
		for n := 1; n <= most; n++ {
			cell := func(f figure) string {
				if len(f) == 0 {
					return "–"
				}
				return fmt.Sprintf("%.2f (%.2f–%.2f)", f.Median(), f.Quantile(0), f.Quantile(1))
			}
			out.Row(b.Engine.Name, fmt.Sprint(n), cell(came[n]), cell(left[n]), cell(died[n]))
		}
	})
	out.Print()
}

// TestGroupsIdle counts what idle instances send to the database: members of a group of 32 jobs, and instances of a
// consumer of 32 shards. Their leases live for 10 s.
func TestGroupsIdle(t *testing.T) {
	out := table{Title: "Quiet instances: statements/s sent, BEGIN and COMMIT included",
		Head: []string{"database", "what", "instances", "statements/s", "each"}}
	each(t, func(b *bed) {
		db := b.Rowfeed(b.Pool, nil)
		b.fill("items", 1000)
		f := b.Feed(db, rowfeed.FeedSpec{Name: "items", Table: "items", DataShards: 1024})
		_, err := f.Publish(b.Context())
		b.Must(err)
		for what, run := range map[string]func(m *groupMember) func(ctx context.Context) error{
			"group of 32 jobs": func(m *groupMember) func(ctx context.Context) error {
				return func(ctx context.Context) error {
					return m.db.Group("g", groupJobs, 10*time.Second).Run(ctx, untilAsked)
				}
			},
			"consumer of 32 shards": func(m *groupMember) func(ctx context.Context) error {
				return func(ctx context.Context) error {
					f, err := m.db.Feed(ctx, "items")
					if err != nil {
						return err
					}
					c := &rowfeed.Consumer{Name: "c", Source: f, DB: m.db, ShardCount: groupJobs,
						Handle: func(context.Context, *sql.Tx, []rowfeed.Entry) error { return nil }}
					return c.Run(ctx)
				}
			},
		} {
			for _, n := range []int{1, 8} {
				var sent atomic.Int64
				var members []*groupMember
				for range n {
					m := b.groupMember(&sent)
					m.run(b, run(m))
					members = append(members, m)
				}
				for !b.balanced(n) {
					time.Sleep(50 * time.Millisecond)
				}
				time.Sleep(min(5*time.Second, 2**window))
				before := sent.Load()
				time.Sleep(*window)
				rate := float64(sent.Load()-before) / window.Seconds()
				out.Row(b.Engine.Name, what, fmt.Sprint(n), fmt.Sprintf("%.1f", rate),
					fmt.Sprintf("%.1f", rate/float64(n)))
				var leaving sync.WaitGroup
				for _, m := range members {
					leaving.Go(func() {
						m.stop()
						<-m.ended
					})
				}
				leaving.Wait()
			}
		}
	})
	out.Print()
}
