package consume

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// consumeForever is a consumer's process in TestKilledConsumersApplyOnce.
func consumeForever() error {
	ctx := context.Background()
	pool, d, err := suite.Open(ctx, os.Getenv("URL"), nil)
	if err != nil {
		return err
	}
	rf, err := rowfeed.Open(ctx, pool, d, nil)
	if err != nil {
		return err
	}
	f, err := rf.Feed(ctx, "kv")
	if err != nil {
		return err
	}
	c := (&suite.Receiver{}).Consumer(f, rf)
	c.Options.Limit = 3
	return errors.Join(c.Run(ctx), errors.New("the consumer has ended"))
}

func init() {
	testdb.RegisterChild("consume forever", func() {
		if err := consumeForever(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// TestKilledConsumersApplyOnce (M47, H3): three processes consume under one name while rows are written, published and
// deleted, and each process is killed repeatedly. Every position takes effect at most once, and together the effects
// are the table.
func TestKilledConsumersApplyOnce(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		start := func() *testdb.Child { return testdb.CrashChild(x.T, "consume forever", "URL="+x.DB.URL) }
		children := []*testdb.Child{start(), start(), start()}
		random := rand.New(rand.NewPCG(suite.RaceSeed(x.T), 1))
		const rows, rounds = 40, 12
		head := int64(0)
		for round := range rounds {
			for range 15 {
				id := random.IntN(rows)
				x.Exec(fmt.Sprintf("DELETE FROM kv WHERE id = %d", id))
				if random.IntN(4) > 0 {
					x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', %d)", id, round))
				}
			}
			x.Publish(f)
			// Kill in the middle of the new entries; the last round runs to the end. The sequence may be higher: a
			// key that was inserted and deleted uses up a number without an entry.
			next := x.Scalar("SELECT COALESCE(MAX(feed_sync_id), 0) FROM rowfeed_positions_kv")
			want := head + random.Int64N(max(next-head, 1))
			if round == 0 {
				// At least one effect, so that the start mark is stored. Otherwise later deletes would be below the
				// mark, and a consumer that begins does not get those.
				want = min(max(want, 1), next)
			}
			if round == rounds-1 {
				want = next
			}
			x.Eventually("the consumers continue", func() bool {
				return x.Scalar("SELECT COALESCE(MAX(position), 0) FROM applied") >= want
			})
			if round == rounds-1 {
				break
			}
			head = next
			victim := random.IntN(len(children))
			children[victim].Kill()
			children[victim] = start()
		}
		if n := x.Scalar("SELECT COUNT(*) FROM (SELECT position FROM applied " +
			"GROUP BY position HAVING COUNT(*) > 1) twice"); n != 0 {
			x.Errorf("%d positions took effect more than once", n)
		}
		// The last effect of each key is its row.
		wrong := x.Scalar(`SELECT COUNT(*) FROM applied a LEFT JOIN kv ON kv.id = a.id
			WHERE a.position = (SELECT MAX(b.position) FROM applied b WHERE b.id = a.id)
			AND NOT (a.op = 'upsert' AND kv.v = a.v OR a.op = 'delete' AND kv.id IS NULL)`)
		missing := x.Scalar("SELECT COUNT(*) FROM kv WHERE id NOT IN (SELECT id FROM applied)")
		if wrong != 0 || missing != 0 {
			x.Errorf("%d keys have another last effect than their row, %d have none", wrong, missing)
		}
		for _, c := range children {
			c.Kill()
		}
		r.Once(r.Consumer(f, x.RF))
		if got := takeHanded(r); len(got) != 0 {
			x.Errorf("the head was reached, and still there was %q", got)
		}
	})
}
