package bench

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// appending is a way to insert rows that get their position after the commit.
type appending struct {
	name string
	spec *rowfeed.FeedSpec // nil: no feed
	own  string            // what the writer also does: "library", "sql" or nothing
}

var appendings = []appending{
	{"plain INSERT", nil, ""},
	{"outbox, AppendOutbox", &rowfeed.FeedSpec{Mode: rowfeed.ModeOutbox}, "library"},
	{"outbox, INSERT of the record", &rowfeed.FeedSpec{Mode: rowfeed.ModeOutbox}, "sql"},
	{"outbox, trigger", &rowfeed.FeedSpec{Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger}, ""},
	{"sequence, trigger", &rowfeed.FeedSpec{}, ""},
}

// TestOutboxWriters counts the commits of 8 writers, compared with a plain INSERT. Each transaction is BEGIN, one
// INSERT, what the feed needs, and COMMIT. No reader runs.
func TestOutboxWriters(t *testing.T) {
	out := table{
		Title: fmt.Sprintf("%d writers, commits/s", writerCount),
		Head:  []string{"database", "write", "commits/s", "÷ plain"},
	}
	each(t, func(b *bed) {
		query := ""
		if b.Family == "mysql" {
			query = "?interpolateParams=true" // one round trip for a statement, as on other databases
		}
		pool, _ := b.Open(query)
		db := b.Rowfeed(b.Pool, nil)
		var next atomic.Int64
		feeds := make([]*rowfeed.Feed, len(appendings))
		for i, a := range appendings {
			b.SQL(fmt.Sprint("CREATE TABLE items", i,
				" (id bigint NOT NULL PRIMARY KEY, payload varchar(200) NOT NULL)"))
			if a.spec != nil {
				spec := *a.spec
				spec.Name, spec.Table = fmt.Sprint("items", i), fmt.Sprint("items", i)
				feeds[i] = b.Feed(db, spec)
			}
		}
		p := b.Dialect.Placeholder
		write := func(i int) error {
			tx, err := pool.BeginTx(b.Context(), nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			id := next.Add(1)
			_, err = tx.ExecContext(b.Context(),
				fmt.Sprintf("INSERT INTO items%d (id, payload) VALUES (%s, %s)", i, p(1), p(2)), id, payload)
			switch {
			case err != nil:
			case appendings[i].own == "library":
				err = feeds[i].AppendOutbox(b.Context(), rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: rowfeed.Key{id}})
			case appendings[i].own == "sql":
				_, err = tx.ExecContext(b.Context(),
					fmt.Sprintf("INSERT INTO rowfeed_outbox_items%d (id) VALUES (%s)", i, p(1)), id)
			}
			return errors.Join(err, tx.Commit())
		}
		results := figures[int]{}
		for rep := range *reps {
			for i := range appendings {
				i = (i + rep) % len(appendings)
				var running sync.WaitGroup
				var done atomic.Int64
				started := time.Now()
				for range writerCount {
					running.Go(func() {
						for time.Since(started) < *window {
							if err := write(i); err != nil {
								b.Errorf("%s: %v", appendings[i].name, err)
								return
							}
							done.Add(1)
						}
					})
				}
				running.Wait()
				results.Add(i, float64(done.Load())/time.Since(started).Seconds())
			}
		}
		for i, a := range appendings {
			out.Row(b.Engine.Name, a.name, count(results[i].Median()), results[i].Over(results[0]).Ratio())
			if feeds[i] != nil { // check that no row is missing
				_, err := feeds[i].Publish(b.Context())
				b.Must(err)
				b.same(i, b.read(feeds[i]))
			}
		}
	})
	out.Print()
}

// same fails if a reader has not got all rows of a table.
func (b *bed) same(i, got int) {
	b.Helper()
	if want := b.Number(fmt.Sprintf("SELECT count(*) FROM items%d", i)); int64(got) != want {
		b.Errorf("%d of %d rows were read from items%d", got, want, i)
	}
}

// read reads a feed of one shard from its beginning until a page is empty.
func (b *bed) read(f *rowfeed.Feed) (rows int) {
	b.Helper()
	for after := rowfeed.Beginning; ; {
		page, err := f.Fetch(b.Context(), rowfeed.Request{After: after, Limit: 1000})
		b.Must(err)
		rows, after = rows+len(page.Entries), page.Cursor
		if len(page.Entries) == 0 && !page.More {
			return rows
		}
	}
}

// TestOutboxRead reads rows that wait in an outbox, in pages of 1000. The first reader assigns the positions, the
// second one only reads. For comparison, a sequence feed of the same rows is published and then read.
func TestOutboxRead(t *testing.T) {
	rows := scaled(100_000)
	out := table{
		Title: fmt.Sprintf("reading %s rows, rows/s", count(float64(rows))),
		Head: []string{
			"database",
			"sequence, published and read",
			"outbox, first reader",
			"÷",
			"sequence, read",
			"outbox, read again",
			"÷",
		},
	}
	each(t, func(b *bed) {
		b.fill("base", rows)
		db := b.Rowfeed(b.Pool, nil)
		results := figures[string]{}
		timed := func(name string, i int, do func() int) {
			b.Helper()
			started := time.Now()
			got := do()
			results.Add(name, float64(rows)/time.Since(started).Seconds())
			b.same(i, got)
		}
		for rep := range *reps {
			modes := []string{rowfeed.ModeSequence, rowfeed.ModeOutbox}
			if rep%2 == 1 {
				slices.Reverse(modes)
			}
			for i, mode := range modes {
				i += 2 * rep
				name := fmt.Sprint("items", i)
				b.SQL("CREATE TABLE " + name + " (id bigint NOT NULL PRIMARY KEY, payload varchar(200) NOT NULL)")
				f := b.Feed(db, rowfeed.FeedSpec{Name: name, Table: name, Mode: mode, Capture: feedtype.CaptureTrigger})
				b.SQL("INSERT INTO " + name + " SELECT id, payload FROM base ORDER BY id")
				if mode == rowfeed.ModeOutbox {
					timed("first", i, func() int { return b.read(f) })
					timed("again", i, func() int { return b.read(f) })
				} else {
					timed("published", i, func() int {
						_, err := f.Publish(b.Context())
						b.Must(err)
						return b.read(f)
					})
					timed("sequence", i, func() int { return b.read(f) })
				}
				b.Must(db.DropFeed(b.Context(), name))
				b.SQL("DROP TABLE " + name)
			}
		}
		out.Row(
			b.Engine.Name,
			count(results["published"].Median()),
			count(results["first"].Median()),
			results["first"].Over(results["published"]).Ratio(),
			count(
				results["sequence"].Median(),
			),
			count(results["again"].Median()),
			results["again"].Over(results["sequence"]).Ratio(),
		)
	})
	out.Print()
}

// TestOutboxOldSnapshot measures what an old snapshot costs readers. While it is open, the records that were moved stay
// in the table where a reader looks for the next record. The figures are a page at the head, and a pass that finds
// nothing.
func TestOutboxOldSnapshot(t *testing.T) {
	rows := scaled(100_000)
	out := table{
		Title: fmt.Sprintf("%s records moved, a snapshot from before open, ms", count(float64(rows))),
		Head: []string{
			"database",
			"page at the head: before",
			"with the snapshot",
			"when it has ended",
			"empty pass: before",
			"with the snapshot",
			"when it has ended",
			"moving them",
		},
	}
	each(t, func(b *bed) {
		if b.Engine.Family == "sqlite" {
			return // SQLite would read them from the log
		}
		b.fill("base", rows)
		db := b.Rowfeed(b.Pool, nil)
		b.SQL("CREATE TABLE items (id bigint NOT NULL PRIMARY KEY, payload varchar(200) NOT NULL)")
		f := b.Feed(
			db,
			rowfeed.FeedSpec{Name: "items", Table: "items", Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger},
		)
		b.SQL("INSERT INTO items VALUES (-1, 'first')")
		ms := func(do func()) string {
			var all figure
			for range 5 {
				started := time.Now()
				do()
				all = append(all, float64(time.Since(started).Microseconds())/1000)
			}
			return fmt.Sprintf("%.1f", all.Median())
		}
		publish := func() { _, err := f.Publish(b.Context()); b.Must(err) }
		publish()
		var pages, passes []string
		idle := func() {
			at, err := f.Fetch(b.Context(), rowfeed.Request{After: rowfeed.Now, Shards: rowfeed.One(0)})
			b.Must(err)
			pages = append(pages, ms(func() {
				_, err := f.Fetch(b.Context(), rowfeed.Request{After: at.Cursor, Shards: rowfeed.One(0)})
				b.Must(err)
			}))
			passes = append(passes, ms(publish))
		}
		idle()
		old, err := b.Pool.BeginTx(b.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		b.Must(err)
		defer old.Rollback()
		_, err = old.ExecContext(b.Context(), "SELECT count(*) FROM base")
		b.Must(err)
		b.SQL("INSERT INTO items SELECT id, payload FROM base ORDER BY id")
		started := time.Now()
		publish()
		moving := fmt.Sprintf("%.0f", time.Since(started).Seconds()*1000)
		idle()
		b.Must(old.Rollback())
		idle()
		out.Row(append(append([]string{b.Engine.Name}, append(pages, passes...)...), moving)...)
	})
	out.Print()
}
