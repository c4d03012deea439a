package console_test

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
)

// TestFirstPageListsProblems: the first page begins with what fails, with error, attempts and links, but names only
// feeds that the token may see. The consumers' pages show the same failures.
func TestFirstPageListsProblems(t *testing.T) {
	pool, db := open(t)
	exec(t, pool, `CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)`)
	exec(t, pool, `CREATE TABLE other (id INTEGER PRIMARY KEY, v TEXT)`)
	exec(t, pool, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
		INSERT INTO kv SELECT i, '' FROM n`)
	f, err := db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 8}, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := addFeed(t, db, "other")
	publish(t, f)
	if _, body := get(t, pages(db, nil), "/"); strings.Contains(body, "problems-title") {
		t.Errorf("nothing fails: %s", body)
	}
	fails(t, db, f)
	exec(t, pool, `INSERT INTO other VALUES (1, '')`)
	exec(t, pool, `ALTER TABLE rowfeed_positions_other RENAME TO away`)
	if _, err := other.Publish(t.Context()); err == nil {
		t.Fatal("published without the table of positions")
	}
	_, body := get(t, pages(db, nil), "/")
	for _, want := range []string{"4 problems", `publisher of feed <a href="./feeds/other">`, "rowfeed_positions_other",
		`consumer <a href="./consumers/billing">billing</a>, shard 0 of 2`, "shard 1 of 2", "no customer",
		"first failed"} {
		if !strings.Contains(body, want) {
			t.Errorf("the first page lacks %q: %s", want, body)
		}
	}
	for _, path := range []string{"/consumers", "/consumers/billing", "/feeds/kv"} {
		if _, body := get(t, pages(db, nil), path); !strings.Contains(body, "no customer") ||
			!strings.Contains(body, "first failed") {
			t.Errorf("%s lacks the failure: %s", path, body)
		}
	}
	reader := access.Identity{Name: "reader", Grants: []access.Grant{{Right: access.Read, Feed: "kv"}},
		View: feedtype.View{Mask: []string{"v"}}}
	_, body = get(t, as(reader, console.NewHandler(access.Over(feedhttp.Of(db)), console.Of(db), nil)), "/")
	if !strings.Contains(body, "2 problems") || strings.Contains(body, "other") ||
		strings.Contains(body, "no customer") {
		t.Errorf("a reader with a view: %s", body)
	}
}
