package ulid

import (
	"database/sql"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// sqlBlock is a block of SQL in a document. Its title names databases.
type sqlBlock struct {
	title      string
	statements []string
	outbox     bool // about mode outbox
}

// is reports whether the block is about the database.
func (b sqlBlock) is(x *suite.Env) bool {
	return strings.Contains(b.title, x.Text("ulid.document")) || strings.Contains(b.title, "all databases")
}

// routine reports whether the block creates a procedure, which contains semicolons. Another test calls it.
func (b sqlBlock) routine() bool { return strings.HasPrefix(b.statements[0], "CREATE PROCEDURE") }

// ulidDocument reads the blocks of docs/ULIDS.md.
func ulidDocument(t *testing.T) (blocks []sqlBlock) {
	text, err := os.ReadFile("../../../docs/ULIDS.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sql\n-- ([^\n]*)\n(.*?)```")
	for _, match := range block.FindAllStringSubmatch(string(text), -1) {
		title, code := match[1], match[2]
		statements := strings.Split(strings.TrimSuffix(strings.TrimSpace(code), ";"), ";\n")
		outbox := strings.Contains(code, "outbox_") || strings.Contains(title, "outbox")
		blocks = append(blocks, sqlBlock{title, statements, outbox})
	}
	return blocks
}

// TestDocumentedOutboxSQLWorks (M59): the SQL of docs/ULIDS.md about mode outbox creates a table and writes rows.
// Readers get the rows in the order and shards that their records name.
func TestDocumentedOutboxSQLWorks(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Needs("ulid.document")
		var blocks [][]string
		for _, block := range ulidDocument(t) {
			if block.outbox && block.is(x) {
				blocks = append(blocks, block.statements)
			}
		}
		if len(blocks) != 3 {
			x.Fatalf("%d blocks of SQL are about this database, want 3", len(blocks))
		}
		x.Exec(blocks[0]...)
		spec := rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox}
		f := &suite.Events{Env: x, Feed: x.Add(spec)}
		conn := connection(x)
		for _, statement := range slices.Concat(blocks[1], blocks[2]) {
			if _, err := conn.ExecContext(x.Ctx, x.Has.Spell(statement)); err != nil {
				x.Fatalf("%s: %v", statement, err)
			}
		}
		f.WantShard(7, 10, 11, 12, 13)
		first := ulid.MustParse(f.Page(f.Feed, 7, "", 1).Entries[0].Position)
		if at := suite.Millis(first); at.UnixMilli() != 1767225600000 {
			x.Errorf("the first entry has the time %s", at)
		}
	})
}

// TestDocumentedLockSQLWorks (M39): the SQL of docs/ULIDS.md about mode blocking creates a table and writes rows.
// Readers get all rows, and the shard is not locked afterwards.
func TestDocumentedLockSQLWorks(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Needs("ulid.document")
		var blocks [][]string
		for _, block := range ulidDocument(t) {
			if !block.outbox && !block.routine() && block.is(x) {
				blocks = append(blocks, block.statements)
			}
		}
		want := 2
		if !x.Has.Functions {
			want = 1
		}
		if len(blocks) != want {
			x.Fatalf("%d blocks of SQL are about this database, want %d", len(blocks), want)
		}
		x.Exec(blocks[0]...)
		f := x.Add(suite.EventsSpec())
		if !x.Has.Functions {
			return
		}
		conn := connection(x)
		for _, statement := range blocks[1] {
			if _, err := conn.ExecContext(x.Ctx, x.Has.Spell(statement)); err != nil {
				x.Fatalf("%s: %v", statement, err)
			}
		}
		page, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(7), Limit: 1000})
		rows := x.Scalar("SELECT count(*) FROM events")
		if err != nil || rows == 0 || int64(len(page.Entries)) != rows || page.More {
			x.Errorf("%d entries of %d rows, %v", len(page.Entries), rows, err)
		}
		// If the block left its transaction open, this lock would fail.
		tx := x.Begin(sql.LevelReadCommitted)
		if _, err := f.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{7}}); err != nil {
			x.Error(err)
		}
		x.Commit(tx)
	})
}
