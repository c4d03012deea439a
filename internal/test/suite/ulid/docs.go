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

// sqlBlock is a block of SQL of a document, whose first line names databases.
type sqlBlock struct {
	title      string
	statements []string
	outbox     bool // it is about mode outbox
}

func (b sqlBlock) is(x *suite.Env) bool {
	name := x.By(map[string]string{"sqlite": "SQLite", "postgres": "PostgreSQL", "mysql": "MySQL"})
	return strings.Contains(b.title, name) || strings.Contains(b.title, "all databases")
}

// routine tells whether it makes a routine: semicolons are part of it, and writers call it elsewhere.
func (b sqlBlock) routine() bool { return strings.HasPrefix(b.statements[0], "CREATE PROCEDURE") }

func ulidDocument(t *testing.T) (blocks []sqlBlock) {
	text, err := os.ReadFile("../../../docs/ULIDS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sql\n-- ([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, sqlBlock{block[1], strings.Split(strings.TrimSuffix(strings.TrimSpace(block[2]), ";"), ";\n"), strings.Contains(block[2], "outbox_") || strings.Contains(block[1], "outbox")})
	}
	return blocks
}

// TestDocumentedOutboxSQLWorks (M59): what it says of mode outbox, too: the table, and rows written in SQL, which
// are read in the order and shards that their records say.
func TestDocumentedOutboxSQLWorks(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		var blocks [][]string
		for _, block := range ulidDocument(t) {
			if block.outbox && block.is(x) {
				blocks = append(blocks, block.statements)
			}
		}
		if len(blocks) != 3 {
			x.Fatalf("%d blocks", len(blocks))
		}
		x.Exec(blocks[0]...)
		f := &suite.Events{Env: x, Feed: x.Add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox})}
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		x.Cleanup(func() { conn.Close() })
		for _, statement := range slices.Concat(blocks[1], blocks[2]) {
			if _, err := conn.ExecContext(x.Ctx, statement); err != nil {
				x.Fatalf("%s: %v", statement, err)
			}
		}
		f.WantShard(7, 10, 11, 12, 13)
		if at := suite.Millis(ulid.MustParse(f.Page(f.Feed, 7, "", 1).Entries[0].Position)); at.UnixMilli() != 1767225600000 {
			x.Errorf("the first is of %s", at)
		}
	})
}

// TestDocumentedLockSQLWorks (M39): the SQL of docs/ULIDS.md about mode blocking does what it says.
func TestDocumentedLockSQLWorks(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		var blocks [][]string
		for _, block := range ulidDocument(t) {
			if !block.outbox && !block.routine() && block.is(x) {
				blocks = append(blocks, block.statements)
			}
		}
		want := 2
		if x.Family() == "sqlite" {
			want = 1
		}
		if len(blocks) != want {
			x.Fatalf("%d blocks", len(blocks))
		}
		x.Exec(blocks[0]...)
		f := x.Add(suite.EventsSpec())
		if x.Family() == "sqlite" {
			return
		}
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		x.Cleanup(func() { conn.Close() })
		for _, statement := range blocks[1] {
			if _, err := conn.ExecContext(x.Ctx, statement); err != nil {
				x.Fatalf("%s: %v", statement, err)
			}
		}
		page, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(7), Limit: 1000})
		if rows := x.Scalar("SELECT count(*) FROM events"); err != nil || rows == 0 || int64(len(page.Entries)) != rows || page.More {
			x.Errorf("%d entries of %d rows, %v", len(page.Entries), rows, err)
		}
		// A transaction that the block leaves open would keep the shard.
		tx := x.Begin(sql.LevelReadCommitted)
		if _, err := f.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{7}}); err != nil {
			x.Error(err)
		}
		x.Commit(tx)
	})
}
