package conformance

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// byScript makes a feed by the script that is printed without a server.
func (x *events) byScript(spec rowfeed.FeedSpec) {
	x.Helper()
	steps, err := rowfeed.PrintFeed(x.dialect, nil, spec)
	if err != nil {
		x.Fatal(err)
	}
	pool, _, err := open.Open(x.ctx, x.db.URL, open.Options{}) // the script sets what stays with a connection
	if err != nil {
		x.Fatal(err)
	}
	defer pool.Close()
	conn, err := pool.Conn(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	defer conn.Close()
	for _, step := range steps {
		if _, err := conn.ExecContext(x.ctx, step.SQL); err != nil {
			x.Fatalf("%s: %v\n%s", step.Note, err, step.SQL)
		}
	}
	if x.feed, err = x.rf.Feed(x.ctx, spec.Name); err != nil {
		x.Fatal(err)
	}
}

// linesThatDiffer are those of one text that the other has not, and the other way round.
func linesThatDiffer(have, want string) string {
	haves, wants := strings.Split(have, "\n"), strings.Split(want, "\n")
	var out strings.Builder
	for _, line := range haves {
		if !slices.Contains(wants, line) {
			fmt.Fprintf(&out, "\n+ %s", line)
		}
	}
	for _, line := range wants {
		if !slices.Contains(haves, line) {
			fmt.Fprintf(&out, "\n- %s", line)
		}
	}
	return out.String()
}

// lines are the rows of a query as text.
func (x *env) lines(query string) string {
	x.Helper()
	rows, err := dialect.QueryAll(x.ctx, dialect.On(x.db.Admin()), query, nil, func(rows dialect.Rows) (string, error) {
		var line string
		return line, rows.Scan(&line)
	})
	if err != nil {
		x.Fatalf("%s: %v", query, err)
	}
	return strings.Join(rows, "\n")
}

// joined is an expression for columns as one text.
func (x *env) joined(columns ...string) string {
	x.Helper()
	text := x.by(map[string]string{"sqlite": "text", "postgres": "text", "mysql": "char"})
	for i, c := range columns {
		columns[i] = "COALESCE(CAST(" + c + " AS " + text + "), 'NULL')"
	}
	if x.family() == "mysql" {
		return "concat_ws(' ', " + strings.Join(columns, ", ") + ")"
	}
	return strings.Join(columns, " || ' ' || ")
}

// records are what a feed's making leaves in rowfeed's tables, as far as a script can know it.
func (x *env) records() string {
	x.Helper()
	return x.lines("SELECT "+x.joined("mode", "capture", "state", "generation", "source_table", "data_shards", "shard_column", "tombstones_seconds", "database_identity")+" FROM rowfeed_feeds") + "\n" +
		x.lines("SELECT "+x.joined("name", "value", "version")+" FROM rowfeed_sequences") + "\n" +
		x.lines("SELECT "+x.joined("feed", "shard", "time_ms", "ulid_high", "ulid_low", "below_high", "below_low", "witness", "live_from", "filled_by")+" FROM rowfeed_shards ORDER BY shard")
}

// forget drops the feed, and what is kept of it.
func (x *events) forget(before string) {
	x.Helper()
	if err := x.rf.DropFeed(x.ctx, "events"); err != nil {
		x.Fatal(err)
	}
	x.exec("DELETE FROM rowfeed_feeds")
	if after := x.db.Dump(x.T); after != before {
		x.Errorf("the drop leaves\n%s\nof\n%s", after, before)
	}
}

// schema is the dump, without the name of the database where triggers are named with it: MariaDB
// keeps the words of their statements, and a script has no name to give them.
func (x *events) schema() string {
	dump := x.db.Dump(x.T)
	if x.family() == "mysql" {
		dump = strings.ReplaceAll(dump, "`"+x.db.Name+"`.", "")
	}
	return dump
}

func (x *events) wantVerified() {
	x.Helper()
	if problems, err := x.feed.Admin().Verify(x.ctx); err != nil || len(problems) > 0 {
		x.Errorf("verify: %v, %v", problems, err)
	}
}

// TestPrintBlocking (M28): the script that is printed without a server makes the feed that feed add
// makes: the same schema, the same record, shards that go on above their rows (M28, M62).
func TestPrintBlocking(t *testing.T) {
	for _, bytes := range []bool{false, true} {
		t.Run(fmt.Sprintf("bytes=%v", bytes), func(t *testing.T) {
			each(t, func(e *env) {
				ulidType := e.ulidType()
				if bytes && e.family() != "postgres" {
					return // they have one type
				} else if bytes {
					ulidType = "bytea"
				}
				x := &events{env: e}
				x.exec(strings.Replace(x.eventsTable("events"), x.ulidType(), ulidType, 1), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
				for i, row := range []struct {
					shard int
					hex   string
				}{{4, "01857302da88ffffbfffffffffffffff"}, {4, "01857302da87ffff3fffffffffffffff"}, {5, "018abcdef9f0ffffffffffffffffffff"}, {-6, "00000000000100000000000000000001"},
					{8, "019abcdef0123456ff00ff00ff00ff00"}} {
					x.exec(fmt.Sprintf("INSERT INTO events VALUES (%d, %d, %s, '')", i+1, row.shard,
						x.by(map[string]string{"sqlite": "x'" + row.hex + "'", "postgres": map[bool]string{false: "'", true: `'\x`}[bytes] + row.hex + "'", "mysql": "x'" + row.hex + "'"})))
				}
				before := x.db.Dump(x.T)
				spec := eventsSpec()
				spec.Key, spec.PositionColumn, spec.ShardColumn = []string{"id:BIGINT"}, "ulid:"+ulidType, "shard:int"
				x.add(spec)
				added, record := x.schema(), x.records()
				x.forget(before)

				x.byScript(spec)
				if printed := x.schema(); printed != added {
					x.Errorf("the schema is other than feed add's: %s", linesThatDiffer(printed, added))
				}
				if printed := x.records(); printed != record {
					x.Errorf("by script there is\n%s\nby feed add\n%s", printed, record)
				}
				x.wantVerified()
				x.wantSound(x.feed)
				if again := x.add(spec); again != x.feed || x.records() != record {
					x.Errorf("feed add changes\n%s\nto\n%s", record, x.records())
				}
				cursor := x.page(x.feed, 4, "", 10).Cursor
				x.write(4, 20, 21)
				x.wantIDs(x.page(x.feed, 4, cursor, 10), false, 20, 21)
				x.write(11, 22, 22)
				x.wantIDs(x.page(x.feed, 11, "", 10), false, 22)
				x.wantSound(x.feed)
				x.forget(before)
			})
		})
	}
}

// TestPrintOutbox (M28): the script leaves the feed to back-fill, which feed add with the same arguments
// completes, or feed backfill; meanwhile nobody who begins misses a row (M28, M62).
func TestPrintOutbox(t *testing.T) {
	for _, capture := range []feedtype.Capture{feedtype.CaptureApp, feedtype.CaptureTrigger} {
		t.Run(string(capture), func(t *testing.T) {
			each(t, func(e *env) {
				x := &events{env: e}
				x.exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL, made TIMESTAMP NULL)",
					"INSERT INTO events VALUES (1, 3, '2024-01-02 03:04:06'), (2, 3, '2024-01-02 03:04:05'), (3, 4, NULL)")
				before := x.db.Dump(x.T)
				spec := rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox, Capture: capture, Key: []string{"id:BIGINT"}, ShardColumn: "shard:int", TimeColumn: "made:timestamp"}
				x.add(spec)
				added := x.schema()
				x.forget(before)
				for _, complete := range []func() error{
					func() error { _, err := x.rf.AddFeed(x.ctx, spec, nil); return err },
					func() error { _, err := x.feed.Admin().BackFill(x.ctx, nil); return err },
				} {
					x.byScript(spec)
					if printed := x.schema(); printed != added {
						x.Errorf("the schema is other than feed add's: %s", linesThatDiffer(printed, added))
					}
					x.wantVerified()
					_, err := x.feed.Fetch(x.ctx, rowfeed.Request{Limit: 10, Shards: rowfeed.One(3)})
					x.wantCode(err, rowfeed.Filling)
					x.exec("INSERT INTO events VALUES (9, 3, NULL)")
					if capture == feedtype.CaptureApp {
						tx := x.begin(sql.LevelReadCommitted)
						if err := x.feed.AppendOutbox(x.ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Shard: 3, Key: rowfeed.Key{int64(9)}}); err != nil {
							x.Fatal(err)
						}
						x.commit(tx)
					}
					if err := complete(); err != nil {
						x.Fatal(err)
					}
					if state := x.feed.State(); state != "active" {
						x.Errorf("the feed is %s", state)
					}
					x.wantShard(3, 2, 1, 9)
					x.wantShard(4, 3)
					x.wantVerified()
					x.wantSound(x.feed)
					x.exec("DELETE FROM events WHERE id = 9")
					x.forget(before)
				}
			})
		})
	}
}
