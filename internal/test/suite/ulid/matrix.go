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
	"github.com/rowfeed/rowfeed/internal/test/checker/judge"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// load is how much is written, by how many, and who reads it.
type load struct {
	name                    string
	writers, count, readers int
	after                   bool // they read when all is written, not beside
	all                     bool // only with --all: it is the first load, and more of it
}

var loads = []load{
	{name: "10 x 100, 5 readers", writers: 10, count: 100, readers: 5},
	{name: "1 x 1000, then 20 readers", writers: 1, count: 1000, readers: 20, after: true},
	{name: "10 x 200, 10 readers", writers: 10, count: 200, readers: 10, all: true},
}

// matrix is a feed with ULIDs of the table events(id, shard, account, number, prev): its
// writers, and what its readers got.
type matrix struct {
	*suite.Events
	load
	shards    []int
	seed      uint64
	committed map[int]*atomic.Int64 // by shard: a row whose commit was acknowledged
}

// shardRules are the judge's. Each account's rows have one shard and are numbered.
var shardRules = judge.Rules{Key: []string{"id"}, Writer: "account", Number: "number", After: "prev"}

// TestReadersGetEveryRowOnceInOrder (M30, M31, M46, M59, M60, H1): writers by Feed.Lock and by the functions, by AppendOutbox and
// by plain INSERTs, side by side, with one or two shards a transaction, several locks, rollbacks and hints of
// all kinds; one shard and several. Every reader sees every account's rows once and in order, behind all that
// was committed before they were begun: an independent program judges it, from the pages it got over HTTP and
// the table.
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
	spec := rowfeed.FeedSpec{Name: "events", Table: "events", Mode: mode, Columns: []string{"id", "shard", "account", "number", "prev"}}
	columns := "id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, account BIGINT NOT NULL, number BIGINT NOT NULL, prev BIGINT"
	if mode == rowfeed.ModeBlocking {
		spec.PositionColumn, spec.ShardColumn = "ulid", "shard"
		columns += ", ulid " + x.ULIDType() + " NOT NULL, UNIQUE (shard, ulid)"
	}
	x.Exec("CREATE TABLE events (" + columns + ")")
	m.Events = &suite.Events{Env: x, Feed: x.Add(spec)}
	return m
}

// run writes and reads, and has it judged.
func (m *matrix) run() {
	m.Helper()
	server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(m.RF), nil))
	m.Cleanup(server.Close)
	written := make(chan struct{})
	logs := make([]map[int]*[]judge.Entry, m.readers)
	var writing, reading sync.WaitGroup
	ctx, stop := context.WithCancel(m.Ctx)
	defer stop()
	begin := func() {
		for r := range m.readers {
			logs[r] = map[int]*[]judge.Entry{}
			for _, shard := range m.shards {
				log := new([]judge.Entry)
				logs[r][shard] = log
				follower := judge.Follower{URL: fmt.Sprintf("%s/_feeds/fetch/events?shard=%d", server.URL, shard), Limit: 7 + 31*r, Patience: time.Minute,
					Got: func(e judge.Entry) error { *log = append(*log, e); return nil }}
				if r > 1 { // the first two ask again and again, the others wait
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
	if m.Feed.Mode() == rowfeed.ModeOutbox && len(m.shards) > 1 { // whose publisher moves records ahead of readers
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
			if verdict := judge.Judge(*log[shard], rows, shardRules); verdict.Ordered != len(rows) || len(verdict.Faults) > 0 {
				m.Errorf("reader %d of shard %d was given %d of %d rows", r, shard, verdict.Ordered, len(rows))
				suite.Report(m.T, verdict)
			}
			if got, want := m.text(*log[shard]), m.text(*logs[0][shard]); got != want {
				m.Errorf("shard %d: reader %d saw\n%s\nreader 0\n%s", shard, r, got, want)
			}
		}
	}
	if total != m.writers*m.count {
		m.Errorf("%d rows are in the table, %d were committed", total, m.writers*m.count)
	}
	m.WantSound(m.Feed)
}

func (m *matrix) text(log []judge.Entry) string {
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
	plain   bool          // by SQL, as writers without the library do
}

func (m *matrix) writer(number int) *scribe {
	return &scribe{matrix: m, number: number, rnd: rand.New(rand.NewPCG(m.seed, uint64(number))), pool: m.Events.Writer(testdb.Hooks{}), counted: map[int]int64{}}
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
		prev[shard] = s.committed[shard].Load() // before it begins
	}
	isolation := sql.LevelReadCommitted
	if s.Family() == "mysql" && s.rnd.IntN(2) == 0 || s.Family() == "sqlite" {
		isolation = sql.LevelDefault
	}
	// SQLite has no functions.
	s.plain = s.rnd.IntN(2) == 0 && (s.Family() != "sqlite" || s.Feed.Mode() == rowfeed.ModeOutbox)
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
		ids := make([]int64, rows/len(shards)+rows%len(shards)*(1-i)) // the odd one goes first
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
			if s.Family() == "mysql" && prev[shard] == 0 && s.Dialect.Classify(unwrapped(err)) == dialect.ClassRetry {
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

// hint is none, one of the past, of now, or, where that is not refused, of the near future.
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

// values are those of a row but for its ULID.
func values(id int64, shard int, account int64, prev string) string {
	return fmt.Sprintf("%d, %d, %d, %d, %s", id, shard, account, id%1_000_000, prev)
}

// blocking inserts rows with ULIDs that it takes for them, in one range or two.
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

// lock takes ULIDs, and answers the i-th one: SQL for it, or itself.
func (s *scribe) lock(tx *sql.Tx, shard int, hint time.Time) (at func(i int) any, err error) {
	if s.plain {
		if s.Family() == "postgres" {
			_, err = tx.ExecContext(s.Ctx, "SET LOCAL lock_timeout = '1min'")
		}
		if err == nil {
			_, err = s.LockBySQL(tx, shard, timestamp(s.matrix.Events.Env, hint))
		}
		return func(i int) any { return s.BySQL(fmt.Sprint(i), shard) }, err
	}
	u, err := s.Feed.Lock(s.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{shard}, Hint: hint, Wait: time.Minute})
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
	_, err := tx.ExecContext(s.Ctx, "INSERT INTO events (id, shard, account, number, prev, ulid) VALUES ("+values+", "+mark+")", args...)
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
		return s.Feed.AppendOutbox(s.Ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Shard: shard, Hint: hint, Key: rowfeed.Key{id}})
	}
	at := "NULL"
	if !hint.IsZero() {
		at = fmt.Sprint(hint.UnixMilli())
	}
	_, err = tx.ExecContext(s.Ctx, fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (%d, %s, %d)", shard, at, id))
	return err
}

// timestamp writes a hint as the functions take it.
func timestamp(x *suite.Env, hint time.Time) string {
	if hint.IsZero() {
		return "NULL"
	}
	at := hint.UTC().Format("2006-01-02 15:04:05.000000")
	return x.By(map[string]string{"postgres": "'" + at + "+00'", "mysql": "'" + at + "'"})
}

// TestLaterTransactionIsReadLater (M60, H19): what is committed before another transaction begins stands before it,
// whatever hints the two have, and whether they are by the library or by SQL; its time is never
// before that of what stands before it.
func TestLaterTransactionIsReadLater(t *testing.T) {
	for _, mode := range []string{rowfeed.ModeBlocking, rowfeed.ModeOutbox} {
		t.Run(mode, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				m, now := newMatrix(x, mode, []int{7}, load{}), x.Now()
				hints := []time.Time{{}, now.Add(-time.Hour), time.UnixMilli(1), now.Add(30 * time.Second), {}, now.Add(-10 * time.Minute), now}
				s, prev, want := m.writer(0), "NULL", []int(nil)
				for i := range len(hints) * len(hints) {
					for part, hint := range []time.Time{hints[i/len(hints)], hints[i%len(hints)]} {
						id := int64(2*i + part + 1)
						s.plain = (i+part)%3 == 0 && (x.Family() != "sqlite" || mode == rowfeed.ModeOutbox)
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
					if i%5 == 4 { // what is read meanwhile stays where it is
						x.Fetch(m.Feed, "", 1)
					}
				}
				var all rowfeed.Page
				for page := m.Page(m.Feed, 7, "", 1000); len(page.Entries) > 0; page = m.Page(m.Feed, 7, page.Cursor, 1000) {
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
