package ulid

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/checker/feedlog"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// load is how many writers and readers there are, and how many rows a writer commits.
type load struct {
	name                    string
	writers, count, readers int
	after                   bool // readers begin when all writers have ended
	all                     bool // only if ROWFEED_TEST_ALL is 1
}

var loads = []load{
	{name: "10 x 100, 5 readers", writers: 10, count: 100, readers: 5},
	{name: "1 x 1000, then 20 readers", writers: 1, count: 1000, readers: 20, after: true},
	{name: "10 x 200, 10 readers", writers: 10, count: 200, readers: 10, all: true},
}

// matrix is a ULID feed of the table events(id, shard, account, number, prev) with its writers and readers.
type matrix struct {
	*suite.Events
	load
	shards    []int
	seed      uint64
	committed map[int]*atomic.Int64 // by shard: the id of a row whose transaction has committed
}

// shardRules are the rules of package feedlog. Each account's rows are in one shard and have consecutive numbers.
var shardRules = feedlog.Rules{Key: []string{"id"}, Writer: "account", Number: "number", After: "prev"}

// TestReadersGetEveryRowOnceInOrder (M30, M31, M46, M59, M60, H1): writers use Feed.Lock, the functions, AppendOutbox
// or plain INSERTs concurrently. Their transactions write to one or two shards, with several locks, rollbacks and hints
// of all kinds. Every reader gets each account's rows once and in order, after all rows that were committed before
// their transactions began. Package feedlog compares the readers' pages, which come over HTTP, with the table.
func TestReadersGetEveryRowOnceInOrder(t *testing.T) {
	for _, mode := range []string{rowfeed.ModeBlocking, rowfeed.ModeOutbox} {
		for name, shards := range map[string][]int{"one shard": {0}, "several shards": {-5, 0, 77}} {
			for _, load := range loads {
				if load.all && !testdb.All() {
					continue
				}
				t.Run(mode+"/"+name+"/"+load.name, func(t *testing.T) {
					suite.Each(t, func(x *suite.Env) { newMatrix(x, mode, shards, load).run() })
				})
			}
		}
	}
}

func newMatrix(x *suite.Env, mode string, shards []int, load load) *matrix {
	x.Helper()
	m := &matrix{load: load, shards: shards, seed: suite.RaceSeed(x.T), committed: map[int]*atomic.Int64{}}
	for _, shard := range shards {
		m.committed[shard] = new(atomic.Int64)
	}
	spec := rowfeed.FeedSpec{
		Name: "events", Table: "events", Mode: mode, Columns: []string{"id", "shard", "account", "number", "prev"},
	}
	columns := "id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, " +
		"account BIGINT NOT NULL, number BIGINT NOT NULL, prev BIGINT"
	if mode == rowfeed.ModeBlocking {
		spec.PositionColumn, spec.ShardColumn = "ulid", "shard"
		columns += ", ulid " + x.ULIDType() + " NOT NULL, UNIQUE (shard, ulid)"
	}
	x.Exec("CREATE TABLE events (" + columns + ")")
	m.Events = &suite.Events{Env: x, Feed: x.Add(spec)}
	return m
}

// run writes and reads, and judges what the readers got.
func (m *matrix) run() {
	m.Helper()
	server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(m.RF), nil))
	m.Cleanup(server.Close)
	written := make(chan struct{})
	logs := make([]map[int]*[]feedlog.Entry, m.readers)
	var writing, reading sync.WaitGroup
	ctx, stop := context.WithCancel(m.Ctx)
	defer stop()
	begin := func() {
		for r := range m.readers {
			logs[r] = map[int]*[]feedlog.Entry{}
			for _, shard := range m.shards {
				log := new([]feedlog.Entry)
				logs[r][shard] = log
				follower := feedlog.Follower{
					URL:   fmt.Sprintf("%s/_feeds/fetch/events?shard=%d", server.URL, shard),
					Limit: 7 + 31*r, Patience: time.Minute,
					Got: func(e feedlog.Entry) error { *log = append(*log, e); return nil },
				}
				if r > 1 { // two readers poll without waiting
					follower.Wait = 200 * time.Millisecond
				}
				reading.Go(func() {
					if _, err := follower.Follow(m.Ctx, written); err != nil {
						m.Errorf("reader %d of shard %d: %v", r, shard, err)
					}
				})
			}
		}
	}
	if !m.after {
		begin()
	}
	if m.Feed.Mode() == rowfeed.ModeOutbox && len(m.shards) > 1 { // the publisher competes with readers for records
		reading.Go(func() {
			if err := m.Feed.RunPublisher(ctx); err != nil && ctx.Err() == nil {
				m.Error(err)
			}
		})
	}
	for w := range m.writers {
		s := m.writer(w)
		writing.Go(func() {
			if err := s.run(); err != nil {
				m.Errorf("writer %d: %v", w, err)
			}
		})
	}
	writing.Wait()
	close(written)
	stop()
	if m.after {
		begin()
	}
	reading.Wait()
	total := 0
	for _, shard := range m.shards {
		rows := m.Rows(fmt.Sprintf("SELECT id, shard, account, number, prev FROM events WHERE shard = %d", shard))
		total += len(rows)
		for r, log := range logs {
			verdict := feedlog.Check(*log[shard], rows, shardRules)
			if verdict.Ordered != len(rows) || len(verdict.Faults) > 0 {
				m.Errorf("reader %d of shard %d got %d of %d rows in order", r, shard, verdict.Ordered, len(rows))
				suite.Report(m.T, verdict)
			}
			if got, want := m.text(*log[shard]), m.text(*logs[0][shard]); got != want {
				m.Errorf("shard %d: reader %d got\n%s\nand reader 0\n%s", shard, r, got, want)
			}
		}
	}
	if total != m.writers*m.count {
		m.Errorf("the table has %d rows, and %d were committed", total, m.writers*m.count)
	}
	m.WantSound(m.Feed)
}

func (m *matrix) text(log []feedlog.Entry) string {
	text, err := json.Marshal(log)
	if err != nil {
		m.Error(err)
	}
	return string(text)
}

// scribe is a writer of a matrix.
type scribe struct {
	*matrix
	number  int
	rnd     *rand.Rand
	pool    *sql.DB
	counted map[int]int64 // by account
	plain   bool          // writes by SQL, as writers without the library do
}

func (m *matrix) writer(number int) *scribe {
	return &scribe{
		matrix: m, number: number, rnd: rand.New(rand.NewPCG(m.seed, uint64(number))),
		pool: m.Events.Writer(testdb.Hooks{}), counted: map[int]int64{},
	}
}

// run commits as many rows as the load says, a few in a transaction.
func (s *scribe) run() error {
	for left := s.count; left > 0; {
		rows := min(left, 1+s.rnd.IntN(9))
		committed, err := s.transaction(rows)
		if err != nil {
			return err
		}
		if committed {
			left -= rows
		}
	}
	return nil
}

// transaction inserts rows into one shard or two.
func (s *scribe) transaction(rows int) (committed bool, err error) {
	first := s.rnd.IntN(len(s.shards))
	shards := s.shards[first:min(first+1+s.rnd.IntN(2), len(s.shards))]
	prev, last := map[int]int64{}, map[int]int64{}
	for _, shard := range shards {
		prev[shard] = s.committed[shard].Load() // before the transaction begins
	}
	isolation := sql.LevelReadCommitted
	if s.Has.OneWriter || s.rnd.IntN(2) == 0 {
		isolation = sql.LevelDefault
	}
	s.plain = s.rnd.IntN(2) == 0 && (s.Has.Functions || s.Feed.Mode() == rowfeed.ModeOutbox)
	tx, err := s.pool.BeginTx(s.Ctx, &sql.TxOptions{Isolation: isolation})
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // after Commit it does nothing
	insert := s.outbox
	if s.Feed.Mode() == rowfeed.ModeBlocking {
		insert = s.blocking
	}
	for i, shard := range shards {
		ids := make([]int64, rows/len(shards)+rows%len(shards)*(1-i)) // of an odd number, the first shard gets one more
		account := int64(s.number*100 + slices.Index(s.shards, shard))
		for i := range ids {
			s.counted[int(account)]++ // a number that is rolled back is not used again
			ids[i] = account*1_000_000 + s.counted[int(account)]
			last[shard] = ids[i]
		}
		if len(ids) == 0 {
			continue
		}
		if err := insert(tx, shard, ids, account, suite.OrNull(prev[shard])); err != nil {
			if s.Has.GapLocks && prev[shard] == 0 && s.Dialect.Classify(unwrapped(err)) == dialect.ClassRetry {
				return false, nil // see TestRolledBackFirstWriterLetsOthersContinue
			}
			return false, fmt.Errorf("shard %d in %v, by SQL %v: %w", shard, isolation, s.plain, err)
		}
	}
	if s.rnd.IntN(6) == 0 {
		return false, tx.Rollback()
	}
	if err := tx.Commit(); err != nil {
		return false, err
	}
	for shard, id := range last {
		s.committed[shard].Store(id)
	}
	return true, nil
}

// hint returns no hint, or one of long ago, of the last hour, or of the next 30 s.
func (s *scribe) hint() (at time.Time) {
	switch s.rnd.IntN(5) {
	case 0:
		at = time.UnixMilli(s.rnd.Int64N(1_000_000_000))
	case 1:
		at = time.Now().Add(-time.Duration(s.rnd.Int64N(int64(time.Hour))))
	case 2:
		at = time.Now().Add(time.Duration(s.rnd.Int64N(int64(30 * time.Second))))
	}
	return at
}

// values returns the SQL of a row's values without its ULID.
func values(id int64, shard int, account int64, prev string) string {
	return fmt.Sprintf("%d, %d, %d, %d, %s", id, shard, account, id%1_000_000, prev)
}

// blocking inserts rows with the ULIDs of one lock or two.
func (s *scribe) blocking(tx *sql.Tx, shard int, ids []int64, account int64, prev string) error {
	cut := len(ids)
	if s.rnd.IntN(4) == 0 {
		cut = s.rnd.IntN(len(ids) + 1)
	}
	for _, part := range [][]int64{ids[:cut], ids[cut:]} {
		at, err := s.lock(tx, shard, s.hint())
		if err != nil {
			return err
		}
		for i, id := range part {
			if err := s.insert(tx, values(id, shard, account, prev), at(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lock locks a shard. at returns the i-th ULID, or its SQL.
func (s *scribe) lock(tx *sql.Tx, shard int, hint time.Time) (at func(i int) any, err error) {
	if s.plain {
		_, err = lockPatiently(s.Events, tx, shard, hintSQL(s.Env, hint))
		return func(i int) any { return s.BySQL(fmt.Sprint(i), shard) }, err
	}
	request := rowfeed.LockRequest{Shards: []int{shard}, Hint: hint, Wait: time.Minute}
	u, err := s.Feed.Lock(s.Ctx, rowfeed.InTx(tx), request)
	return func(i int) any {
		id, err := u.At(shard, int64(i))
		if err != nil {
			s.Error(err)
		}
		return id
	}, err
}

// insert inserts a row of a blocking feed.
func (s *scribe) insert(tx *sql.Tx, values string, at any) error {
	mark, args := s.Dialect.Placeholder(1), []any{at}
	if expression, ok := at.(string); ok {
		mark, args = expression, nil
	}
	query := "INSERT INTO events (id, shard, account, number, prev, ulid) VALUES (" + values + ", " + mark + ")"
	_, err := tx.ExecContext(s.Ctx, query, args...)
	return err
}

// outbox inserts rows and their records.
func (s *scribe) outbox(tx *sql.Tx, shard int, ids []int64, account int64, prev string) error {
	for _, id := range ids {
		if err := s.record(tx, values(id, shard, account, prev), shard, id, s.hint()); err != nil {
			return err
		}
	}
	return nil
}

// record inserts a row of an outbox feed, and its record.
func (s *scribe) record(tx *sql.Tx, values string, shard int, id int64, hint time.Time) error {
	_, err := tx.ExecContext(s.Ctx, "INSERT INTO events (id, shard, account, number, prev) VALUES ("+values+")")
	if err != nil {
		return err
	}
	if !s.plain {
		record := rowfeed.OutboxRecord{Shard: shard, Hint: hint, Key: rowfeed.Key{id}}
		return s.Feed.AppendOutbox(s.Ctx, rowfeed.InTx(tx), record)
	}
	at := "NULL"
	if !hint.IsZero() {
		at = fmt.Sprint(hint.UnixMilli())
	}
	_, err = tx.ExecContext(s.Ctx, fmt.Sprintf(
		"INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (%d, %s, %d)", shard, at, id))
	return err
}

// TestLaterTransactionIsReadLater (M60, H19): transactions follow one another, by the library and by SQL, with every
// combination of two hints. Readers get the rows in the order of the transactions, with times that never go back.
func TestLaterTransactionIsReadLater(t *testing.T) {
	for _, mode := range []string{rowfeed.ModeBlocking, rowfeed.ModeOutbox} {
		t.Run(mode, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				m, now := newMatrix(x, mode, []int{7}, load{}), x.Now()
				hints := []time.Time{
					{}, now.Add(-time.Hour), time.UnixMilli(1), now.Add(30 * time.Second), {},
					now.Add(-10 * time.Minute), now,
				}
				s, prev, want := m.writer(0), "NULL", []int(nil)
				for i := range len(hints) * len(hints) {
					for part, hint := range []time.Time{hints[i/len(hints)], hints[i%len(hints)]} {
						id := int64(2*i + part + 1)
						s.plain = (i+part)%3 == 0 && (x.Has.Functions || mode == rowfeed.ModeOutbox)
						tx, err := s.pool.BeginTx(x.Ctx, nil)
						if err == nil {
							err = s.ordered(tx, id, hint, prev)
						}
						if err == nil {
							err = tx.Commit()
						}
						if err != nil {
							t.Fatal(err)
						}
						prev, want = fmt.Sprint(id), append(want, int(id))
					}
					if i%5 == 4 { // a reader moves records of an outbox
						x.Fetch(m.Feed, "", 1)
					}
				}
				var all rowfeed.Page
				page := m.Page(m.Feed, 7, "", 1000)
				for ; len(page.Entries) > 0; page = m.Page(m.Feed, 7, page.Cursor, 1000) {
					all.Entries = append(all.Entries, page.Entries...)
				}
				m.WantIDs(all, false, want...)
			})
		})
	}
}

// ordered inserts one row of TestLaterTransactionIsReadLater.
func (s *scribe) ordered(tx *sql.Tx, id int64, hint time.Time, prev string) error {
	row := values(id, 7, 1, prev)
	if s.Feed.Mode() == rowfeed.ModeOutbox {
		return s.record(tx, row, 7, id, hint)
	}
	at, err := s.lock(tx, 7, hint)
	if err != nil {
		return err
	}
	return s.insert(tx, row, at(0))
}
