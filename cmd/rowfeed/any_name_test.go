package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/feeds"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// oddNames are names of tables, columns and schemas that could break out of a statement or script: they have quotes,
// ends of statements, comments, and sequences with a meaning for format(), clients and shells.
var oddNames = []string{
	"$rowfeed$ $body$ $$ $1",
	"per%cent %I %s %% %1$L",
	"it's \"q\" `t` [b] ''",
	"a//b; -- c /* d */ # DELIMITER //",
	`\q \g \! \' \" \`,
	":n :'n' ${n} {{n}} ?",
	"l1\n.dump\n\\q\n-- x\rgo\n/\nDELIMITER ;\nend",
	"größe 表",
}

// oddTable is the table of a feed. The names of table and columns are odd.
type oddTable struct {
	*testing.T
	db   *testdb.Database
	pool *sql.DB
	d    *dialect.Dialect
	rf   *rowfeed.DB

	table, id, shard, ulid, data string
	schema                       string
	types                        []string // of id, shard and ulid, as a spec has them
}

var ulidTypes = map[string]string{"sqlite": "BLOB", "postgres": "uuid", "mysql": "binary(16)"}

// TestAnyNameOfTableOrColumnWorks (V12): whatever the names of schema, table and columns are, a feed of each mode and
// capture is added, written, read, upgraded and dropped. The printed script works in the database's own client.
func TestAnyNameOfTableOrColumnWorks(t *testing.T) {
	specs := []rowfeed.FeedSpec{
		{
			Capture: feedtype.CaptureTrigger,
		}, {Capture: feedtype.CaptureTrigger, DataShards: 4}, {Capture: feedtype.CaptureApp},
		{Capture: feedtype.CaptureColumn},
		{Mode: rowfeed.ModeBlocking}, {Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureApp},
		{Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger},
	}
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		ctx := t.Context()
		pool, d, err := open.Open(ctx, db.URL, open.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pool.Close() })
		cfg := &rowfeed.Config{}
		rf, err := rowfeed.Open(ctx, pool, d, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rf.Migrate(ctx); err != nil {
			t.Fatal(err)
		}
		feeds := 0
		for _, name := range oddNames {
			for _, spec := range specs {
				for _, printed := range []bool{false, true} {
					t.Run(
						fmt.Sprintf("%q %s %s %d printed=%v", name, spec.Mode, spec.Capture, spec.DataShards, printed),
						func(t *testing.T) {
							plain, types := name, []string{"", "", ""}
							if printed { // in --key a colon ends the name
								plain = strings.ReplaceAll(name, ":", "")
								types = []string{":bigint", ":int", ":" + ulidTypes[e.Family]}
							}
							x := &oddTable{
								T:     t,
								db:    db,
								pool:  pool,
								d:     d,
								rf:    rf,
								table: name,
								id:    plain + "i",
								shard: plain + "s",
								ulid:  plain + "u",
								data:  name + "d",
								types: types,
							}
							if e.Family != "sqlite" {
								x.schema = name
							}
							feeds++
							spec.Name = fmt.Sprintf("odd%d", feeds)
							x.run(cfg, spec, printed)
						},
					)
				}
			}
		}
	})
}

func (x *oddTable) exec(statement string, args ...any) {
	x.Helper()
	x.db.Exec(x.T, statement, args...)
}

// run adds, writes, reads, upgrades and drops a feed.
func (x *oddTable) run(cfg *rowfeed.Config, spec rowfeed.FeedSpec, printed bool) {
	ctx, q := x.Context(), x.d.Quote
	family := x.db.Family
	source := dialect.Qualified(x.d.Syntax, feedtype.TableName{Schema: x.schema, Name: x.table})
	if x.schema != "" {
		x.exec("CREATE SCHEMA " + q(x.schema))
		defer x.exec("DROP SCHEMA " + q(x.schema))
	}
	ulidType := ulidTypes[family]
	x.exec("CREATE TABLE " + source + " (" + q(x.id) + " bigint NOT NULL PRIMARY KEY, " + q(x.shard) +
		" int NOT NULL DEFAULT 0, " + q(x.ulid) + " " + ulidType + ", " + q(x.data) + " varchar(100))")
	defer func() { x.exec("DROP TABLE " + source) }()
	spec.Key = []string{x.id + x.types[0]}
	for _, part := range []string{x.schema, x.table} {
		if part != "" {
			spec.Table += `."` + strings.ReplaceAll(part, `"`, `""`) + `"`
		}
	}
	spec.Table = spec.Table[1:]
	if spec.Mode != "" {
		spec.ShardColumn = x.shard + x.types[1]
	}
	blocking := spec.Mode == rowfeed.ModeBlocking
	if blocking {
		spec.PositionColumn = x.ulid + x.types[2]
		x.exec("DROP TABLE " + source)
		x.exec("CREATE TABLE " + source + " (" + q(x.id) + " bigint NOT NULL PRIMARY KEY, " + q(x.shard) +
			" int NOT NULL DEFAULT 0, " + q(x.ulid) + " " + ulidType + " NOT NULL, " + q(x.data) + " varchar(100))")
		x.exec(
			"CREATE UNIQUE INDEX " + q("index "+x.table[:min(len(x.table), 40)]) + " ON " + source + " (" + q(x.shard) +
				", " + q(x.ulid) + ")",
		)
	} else {
		x.exec("INSERT INTO " + source + " (" + q(x.id) + ", " + q(x.data) + ") VALUES (1, 'before')")
	}
	defer func() {
		if err := x.rf.DropFeed(context.WithoutCancel(ctx), spec.Name); err != nil {
			x.Error(err)
		}
	}()
	if printed {
		cfg := *cfg
		if x.schema != "" {
			cfg.Schema = map[string]string{"postgres": "public", "mysql": x.db.Name}[family]
		}
		steps, err := rowfeed.PrintFeed(x.d, &cfg, spec)
		if err != nil {
			x.Fatal(err)
		}
		var script bytes.Buffer
		if err := feeds.PrintScript(&cli.App{Stdout: &script}, x.d, steps); err != nil {
			x.Fatal(err)
		}
		byClient(x.T, x.db, script.String())
	}
	if _, err := x.rf.AddFeed(ctx, spec, nil); err != nil {
		x.Fatal(err)
	}
	f, err := x.rf.Feed(ctx, spec.Name)
	if err != nil {
		x.Fatal(err)
	}
	if printed && family == "sqlite" {
		_, err = f.Admin().Upgrade(ctx) // adds what the script cannot know
	}
	if err != nil {
		x.Fatal(err)
	}
	x.inOrder(f, "when it was added")

	x.write(f, source, spec, 2)
	want := []int64{1, 2}
	if blocking {
		want = []int64{2}
	}
	x.wantRows(f, want...)
	if spec.Capture == feedtype.CaptureTrigger {
		own := dialect.Names{Prefix: "rowfeed_"}
		if family == "mysql" {
			own.Schema = x.db.Name
		}
		trigger := x.d.TriggerNames(&dialect.Feed{Name: spec.Name, Names: own,
			Source: feedtype.TableName{Schema: x.schema}})[0]
		x.exec("DROP TRIGGER " + map[string]string{
			"sqlite":   q(trigger),
			"postgres": q(trigger) + " ON " + source,
			"mysql":    q(x.schema) + "." + q(trigger),
		}[family])
		if mended, err := f.Admin().Upgrade(ctx); err != nil || len(mended) == 0 {
			x.Errorf("upgrade: %q %v", mended, err)
		}
	}
	x.write(f, source, spec, 3)
	x.wantRows(f, append(want, 3)...)
	x.inOrder(f, "at the end")
	findings, err := f.Admin().Check(ctx)
	if err != nil || len(findings) > 0 {
		x.Errorf("check: %+v %v", findings, err)
	}
	if _, err := f.Admin().Status(ctx); err != nil {
		x.Error(err)
	}
	if spec.Mode == "" && family == "postgres" && spec.Capture == feedtype.CaptureTrigger {
		page, err := f.Fetch(ctx, rowfeed.Request{After: rowfeed.Now})
		if err != nil {
			x.Fatal(err)
		}
		x.exec("TRUNCATE " + source)
		if _, err := f.Publish(ctx); err != nil {
			x.Fatal(err)
		}
		page, err = f.Fetch(ctx, rowfeed.Request{After: page.Cursor})
		if err != nil || len(page.Entries) != 3 || page.Entries[0].Op != rowfeed.Delete {
			x.Errorf("after TRUNCATE: %+v %v", page, err)
		}
	}
}

func (x *oddTable) inOrder(f *rowfeed.Feed, when string) {
	x.Helper()
	if problems, err := f.Admin().Verify(x.Context()); err != nil || len(problems) > 0 {
		x.Errorf("%s: %q %v", when, problems, err)
	}
}

// write inserts a row in the way that the feed's capture requires.
func (x *oddTable) write(f *rowfeed.Feed, source string, spec rowfeed.FeedSpec, id int64) {
	x.Helper()
	ctx := x.Context()
	tx, err := x.db.Admin().BeginTx(ctx, nil)
	if err != nil {
		x.Fatal(err)
	}
	defer tx.Rollback()
	columns, values, args := x.d.Quote(x.id)+", "+x.d.Quote(x.data), "("+x.d.Placeholder(1)+", "+x.d.Placeholder(2),
		[]any{id, "row"}
	if spec.Mode == rowfeed.ModeBlocking {
		u, err := f.Lock(ctx, rowfeed.InTx(tx), rowfeed.LockRequest{})
		if err != nil {
			x.Fatal(err)
		}
		one, err := u.At(0, 0)
		if err != nil {
			x.Fatal(err)
		}
		columns, values, args = columns+", "+x.d.Quote(x.ulid), values+", "+x.d.Placeholder(3), append(args, one)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+source+" ("+columns+") VALUES "+values+")", args...); err != nil {
		x.Fatal(err)
	}
	switch {
	case spec.Mode == rowfeed.ModeOutbox && spec.Capture == feedtype.CaptureApp:
		err = f.AppendOutbox(ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: rowfeed.Key{id}})
	case spec.Capture == feedtype.CaptureApp:
		err = f.Republish(ctx, rowfeed.InTx(tx), rowfeed.Key{id})
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		x.Fatal(err)
	}
}

// wantRows publishes, and checks the ids of the rows in the feed.
func (x *oddTable) wantRows(f *rowfeed.Feed, ids ...int64) {
	x.Helper()
	ctx := context.WithoutCancel(x.Context())
	if _, err := f.Publish(ctx); err != nil {
		x.Fatal(err)
	}
	page, err := f.Fetch(ctx, rowfeed.Request{Limit: 100})
	if err != nil {
		x.Fatal(err)
	}
	var got []int64
	for _, e := range page.Entries {
		id, _ := e.Key.Get(x.id)
		data, named := e.Row.Get(x.data)
		if n, ok := id.(int64); ok && named && data != nil {
			got = append(got, n)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		x.Errorf("rows %v, want %v", got, ids)
	}
}

// TestScriptNotesStayComments (V12): a note of a script may contain the name of a login. A line break in it does not
// end the comment.
func TestScriptNotesStayComments(t *testing.T) {
	var script bytes.Buffer
	d, err := open.Dialect("postgres:")
	if err != nil {
		t.Fatal(err)
	}
	steps := []dialect.Step{{Note: "a\nb\rc\r\nd", SQL: "COMMIT"}}
	if err := feeds.PrintScript(&cli.App{Stdout: &script}, d, steps); err != nil {
		t.Fatal(err)
	}
	if want := "-- a\n-- b\n-- c\n-- \n-- d\nCOMMIT;\n"; script.String() != want {
		t.Errorf("%q, want %q", script.String(), want)
	}
}
