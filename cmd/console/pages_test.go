package console_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// hostile is a database whose answers are full of markup that a page must escape. No real database gives such answers.
type hostile struct {
	console.Feeds
	console.Lists
}

const script = `<script>alert(1)</script>"'&`

func (hostile) Consumers(context.Context, rowfeed.ConsumerID) ([]admin.ConsumerStatus, error) {
	behind, age := int64(1234567), 93784.0
	all := []admin.ConsumerStatus{
		{
			Consumer:      script,
			Feed:          script,
			ShardCount:    2,
			Cursor:        script,
			Failure:       &rowfeed.Failure{Error: script + strings.Repeat("\nlong", 100)},
			Behind:        &behind,
			BehindSeconds: &age,
			DeadLetters:   3,
			Lease:         &rowfeed.LeaseStatus{Owner: script},
		},
	}
	return append(all, admin.ConsumerStatus{Consumer: script, Feed: script, Shard: 1, ShardCount: 2, Paused: true}), nil
}

func (hostile) Acts(_ context.Context, before int64, limit int) ([]admin.Act, error) {
	return []admin.Act{
		{
			At:      time.Now().Add(-90 * time.Minute),
			Actor:   "ops<b>",
			Act:     "an old act",
			Object:  "\u202econsumer",
			Detail:  fmt.Sprint(before, limit),
			Outcome: "refused: forbidden",
		},
	}, nil
}

func (hostile) CurrentLeases(context.Context) ([]*rowfeed.LeaseStatus, error) {
	return []*rowfeed.LeaseStatus{
		{Name: script, Owner: script, State: rowfeed.LeaseHeld, Epoch: 4321, ExpiresInSeconds: 8},
	}, nil
}

func (hostile) Blocked(context.Context, string) (console.Blocked, error) {
	age := 3.0
	s := admin.Session{
		Session:     script,
		User:        script,
		Host:        script,
		Application: script,
		State:       script,
		Statement:   script,
		AgeSeconds:  &age,
	}
	return console.Blocked{
		Blockers: []admin.Blocker{{Session: script, User: script, Host: script, Statement: script, Scope: script}},
		Shards: []admin.ShardStatus{
			{Shard: -5, Holder: &s, Waiting: []admin.Session{s, {}}},
		},
		Told: admin.HoldersAll,
	}, nil
}

// TestForeignTextIsEscaped: no text of the database becomes markup of a page.
func TestForeignTextIsEscaped(t *testing.T) {
	_, db := consumed(t)
	data := console.Of(db)
	lies := hostile{data.Feeds, data.Lists}
	data.Feeds, data.Lists = lies, lies
	h := as(access.Everyone(), console.NewHandler(feedhttp.Of(db), data,
		&console.Config{Problems: func(string) []string { return []string{script} }}))
	for _, path := range []string{"/", "/feeds/kv", "/consumers", "/consumers/%3Cscript%3E", "/leases", "/dead-letters",
		"/blocked", "/audit", "/confirm?act=seek&consumer=%3Cscript%3E&feed=%3Cscript%3E&to=%3Cscript%3E",
		"/confirm?act=%3Cscript%3E", "/dead-letters?consumer=%3Cscript%3E", "/feeds/kv?key=%3Cscript%3E"} {
		r, body := get(t, h, path)
		if strings.Contains(body, "<script>") || strings.Contains(body, "<b>") || !strings.Contains(body, "</html>") ||
			r.StatusCode >= 500 {
			t.Errorf("%s: %s has markup of the database: %s", path, r.Status, body)
		}
	}
	for path, want := range map[string][]string{
		"/consumers": {"1,234,567", "1 d 2 h", "failing", "2 shards"},
		"/consumers/%3Cscript%3E": {"<summary>Show all</summary>", `aria-label="100 % of the largest lag"`,
			">paused<"},
		"/leases":  {"4,321", "8 s"},
		"/blocked": {">-5<", "3 s"},
		"/audit":   {"1 h 30 min ago", `title="20`, ">0 100<"},
	} {
		if _, body := get(t, h, path); path != "" {
			for _, w := range want {
				if !strings.Contains(body, w) {
					t.Errorf("%s lacks %q: %s", path, w, body)
				}
			}
		}
	}
}

// TestEmptyPagesSayWhatToDo: an empty page names a command.
func TestEmptyPagesSayWhatToDo(t *testing.T) {
	_, db := open(t)
	for path, want := range map[string]string{"/": "rowfeed feed add", "/consumers": "rowfeed relay",
		"/leases": "rowfeed serve", "/dead-letters": "rowfeed dead list", "/blocked": "rowfeed status",
		"/audit": "rowfeed audit list"} {
		if r, body := get(t, pages(db, nil), path); r.StatusCode != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %s lacks %q", path, r.Status, want)
		}
	}
}

// TestUnknownLagIsExplained: where the lag of a consumer is not known, the pages say so and why. Entries of a feed with
// ULIDs are not counted.
func TestUnknownLagIsExplained(t *testing.T) {
	pool, db := consumed(t)
	exec(t, pool, `INSERT INTO rowfeed_cursors
		(consumer, feed, shard, shard_count, value, generation, epoch, version, paused, aside, updated_at)
		VALUES ('mirror', 'elsewhere', 0, 1, '7', 1, 0, 1, 0, 0, ?)`, time.Now().UnixMicro())
	exec(t, pool, `CREATE TABLE ev (id INTEGER PRIMARY KEY, shard INTEGER NOT NULL)`)
	ev, err := db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "ev", Table: "ev", Mode: rowfeed.ModeOutbox,
		Capture: "trigger", ShardColumn: "shard"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, pool, `INSERT INTO ev VALUES (1, 3)`)
	publish(t, ev)
	consume(t, db, ev, "stock")
	for path, want := range map[string]string{
		"/consumers": "The lag is unknown: the feed is in another database", "/consumers/mirror": "The lag is unknown",
		"/consumers/stock": ">not counted<", "/feeds/ev": ">not counted<",
	} {
		_, body := get(t, pages(db, nil), path)
		body = body[strings.Index(body, "<main"):strings.Index(body, "<dialog")]
		if !strings.Contains(body, want) || strings.Contains(body, ">?<") {
			t.Errorf("%s lacks %q: %s", path, want, body)
		}
	}
}

// TestMessageIsShownOnce: a message is shown once. Its cookie cannot add markup to the page.
func TestMessageIsShownOnce(t *testing.T) {
	_, db := consumed(t)
	h := pages(db, nil)
	r, _ := post(t, h, "/act/pause", form("consumer", "billing", "feed", "kv"))
	cookie := r.Cookies()[0]
	r, body := get(t, h, "/consumers/billing", "Cookie", cookie.Name+"="+cookie.Value)
	if !strings.Contains(body, "1 shard paused") || len(r.Cookies()) != 1 || r.Cookies()[0].MaxAge >= 0 {
		t.Errorf("%v %s", r.Cookies(), body)
	}
	for _, value := range []string{"eyJ0ZXh0IjoiPGI-In0", "x", "e30", ""} { // {"text":"<b>"}
		if _, body = get(t, h, "/", "Cookie", cookie.Name+"="+value); strings.Contains(body, "<b>") {
			t.Errorf("%q is not escaped", value)
		}
	}
}
