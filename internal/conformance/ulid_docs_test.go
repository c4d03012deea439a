package conformance

import (
	"database/sql"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
)

// TestULIDDocument: the SQL of docs/ULIDS.md does what it says.
func TestULIDDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/ULIDS.md")
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(x *env) {
		name := x.by(map[string]string{"sqlite": "SQLite", "postgres": "PostgreSQL", "mysql": "MySQL"})
		var blocks [][]string
		for _, block := range regexp.MustCompile("(?s)```sql\n-- ([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(block[1], name) {
				blocks = append(blocks, strings.Split(strings.TrimSuffix(strings.TrimSpace(block[2]), ";"), ";\n"))
			}
		}
		want := 2
		if x.family() == "sqlite" {
			want = 1
		}
		if len(blocks) != want {
			x.Fatalf("%d blocks for %s", len(blocks), name)
		}
		x.exec(blocks[0]...)
		f := x.add(eventsSpec())
		if x.family() == "sqlite" {
			return
		}
		conn, err := x.db.Admin().Conn(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		x.Cleanup(func() { conn.Close() })
		for _, statement := range blocks[1] {
			if _, err := conn.ExecContext(x.ctx, statement); err != nil {
				x.Fatalf("%s: %v", statement, err)
			}
		}
		page, err := f.Fetch(x.ctx, rowfeed.Request{Shards: rowfeed.One(7), Limit: 1000})
		if rows := x.scalar("SELECT count(*) FROM events"); err != nil || rows == 0 || int64(len(page.Entries)) != rows || page.More {
			x.Errorf("%d entries of %d rows, %v", len(page.Entries), rows, err)
		}
		// A transaction that the block leaves open would keep the shard.
		tx := x.begin(sql.LevelReadCommitted)
		if _, err := f.Lock(x.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{7}}); err != nil {
			x.Error(err)
		}
		x.commit(tx)
	})
}
