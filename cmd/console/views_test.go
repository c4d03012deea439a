package console_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
)

// partly returns a user who sees only the rows of acme, and a console.
func partly(t *testing.T, db *rowfeed.DB, mask ...string) (access.Identity, *console.Handler) {
	t.Helper()
	who := may("read kv", "publish kv")
	who.View = feedtype.View{Where: []feedtype.ViewFilter{{Column: "ns", Values: []string{"acme"}}}, Mask: mask}
	return who, console.NewHandler(access.Over(feedhttp.Of(db)), console.Of(db), nil)
}

// fails runs consumer "billing" on entries that it cannot handle, until both shards have failed.
func fails(t *testing.T, db *rowfeed.DB, f *rowfeed.Feed) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &rowfeed.Consumer{Name: "billing", Source: f, DB: db, ShardCount: 2,
		Options: rowfeed.ConsumerOptions{Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: 1}},
		Deliver: func(_ context.Context, entries []rowfeed.Entry) ([]rowfeed.Refusal, error) {
			return []rowfeed.Refusal{{Entry: 0, Err: fmt.Errorf("no customer %s", entries[0].Key.AppendJSON(nil))}}, nil
		}}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	defer func() {
		stop()
		<-ended
	}()
	for failing := 0; failing < 2; runtime.Gosched() {
		all, err := db.Admin().Consumers(ctx, rowfeed.ConsumerID{Consumer: "billing"})
		if err != nil {
			t.Fatal(err)
		}
		failing = 0
		for _, c := range all {
			if c.Failure != nil {
				failing++
			}
		}
	}
}

// TestViewHidesOtherRows: a user who sees a part of the rows learns nothing of the others, neither from the error of a
// handler nor by republishing a key.
func TestViewHidesOtherRows(t *testing.T) {
	pool, db := open(t)
	exec(t, pool, `CREATE TABLE kv (ns TEXT NOT NULL, k TEXT NOT NULL, v TEXT, PRIMARY KEY (ns, k))`)
	exec(t, pool, `INSERT INTO kv VALUES ('acme', 'a', ''), ('evil', 'plans', ''), ('evil', 'plans2', '')`)
	f, err := db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "kv", Table: "kv", DataShards: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, f)
	fails(t, db, f)
	who, h := partly(t, db)
	if _, body := get(t, as(may("read kv"), h), "/consumers/billing"); !strings.Contains(body, "plans") {
		t.Fatalf("a user who sees all rows does not see the error: %s", body)
	}
	for _, path := range []string{
		"/", "/consumers", "/consumers/billing", "/feeds/kv", "/feeds/kv?key=plans&parts=yes",
	} {
		if _, body := get(t, as(who, h),
			path); strings.Contains(strings.ReplaceAll(body, `value="plans"`, ""), "plans") ||
			strings.Contains(body, "evil") || strings.Contains(body, "act/republish") {
			t.Errorf("%s: %s", path, body)
		}
	}
	var answers []string
	for _, key := range []string{`{"ns":"evil","k":"plans"}`, `{"ns":"evil","k":"none"}`} {
		r, body := post(t, as(who, h), "/act/republish", form("feed", "kv", "key", key))
		if r.StatusCode != 403 {
			t.Errorf("%s: %s", key, r.Status)
		}
		answers = append(answers, body)
	}
	if answers[0] != answers[1] {
		t.Errorf("the answers differ: %s\n%s", answers[0], answers[1])
	}
	if log := audited(t, db); len(log) != 2 || !strings.HasSuffix(log[1], "|refused: forbidden") {
		t.Errorf("%q", log)
	}
	masked := who
	masked.View = feedtype.View{Mask: []string{"v"}}
	if r, body := post(t, as(masked, h), "/act/republish",
		form("feed", "kv", "key", `{"ns":"evil","k":"plans"}`)); r.StatusCode != 303 {
		t.Errorf("a user who sees all rows: %s %s", r.Status, body)
	}
}

// TestViewThatDoesNotFitShowsNothing: if a column of a view no longer exists, the console shows nothing of the feed.
func TestViewThatDoesNotFitShowsNothing(t *testing.T) {
	pool, db := open(t)
	exec(t, pool, `CREATE TABLE kv (ns TEXT NOT NULL, k TEXT NOT NULL, v TEXT, PRIMARY KEY (ns, k))`)
	addFeed(t, db, "kv")
	who, h := partly(t, db, "gone")
	if _, body := get(t, as(who, h), "/feeds/kv"); strings.Contains(body, "<code>ns</code>") ||
		!strings.Contains(body, "no longer fits the feed") {
		t.Errorf("%s", body)
	}
}

// TestFewRefusalsAreAudited: a user without rights cannot fill the audit log. Refusals of other users are still
// in it.
func TestFewRefusalsAreAudited(t *testing.T) {
	_, db := open(t)
	h := console.NewHandler(feedhttp.Of(db), console.Of(db), nil)
	began := time.Now()
	for range 150 {
		if r, _ := post(t, as(may("read kv"), h), "/act/pause",
			form("consumer", "billing", "feed", "kv")); r.StatusCode != 403 {
			t.Fatal(r.Status)
		}
	}
	other := may("read kv")
	other.Name = "another"
	post(t, as(other, h), "/act/pause", form("consumer", "billing", "feed", "kv"))
	most := 101 + int(time.Since(began)/time.Minute) // one more is noted each minute
	all, err := db.Admin().Acts(t.Context(), 0, 1000)
	if err != nil || len(all) < 101 || len(all) > most || all[0].Actor != "another" {
		t.Errorf("%d acts, the last %+v, %v", len(all), all[0], err)
	}
}
