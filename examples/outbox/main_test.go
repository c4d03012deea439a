package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestOneMailPerOrder: there is one mail for each committed order. After a crash a mail has the same id again, and a
// consumer that begins again sends no second mail.
func TestOneMailPerOrder(t *testing.T) {
	ctx := t.Context()
	db := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{})
	feeds, mails, err := open(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	for id, receiver := range []string{"ann", "bob"} {
		if err := order(ctx, db, mails, int64(id), receiver); err != nil {
			t.Fatal(err)
		}
	}
	if err := order(ctx, db, mails, 1, "nobody"); err == nil { // the order exists already
		t.Fatal("an order was accepted twice")
	}
	var ids, receivers []string
	crash := true
	send := func(_ context.Context, id string, m mail) error {
		ids, receivers = append(ids, id), append(receivers, m.Receiver)
		if crash {
			crash = false
			return rowfeed.Later(errors.New("gone before it was noted"))
		}
		return nil
	}
	if err := sender(feeds, mails, send).RunOnce(ctx); !errors.Is(err, rowfeed.Unavailable) {
		t.Fatal(err)
	}
	if err := sender(feeds, mails, send).RunOnce(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := feeds.Admin().ResetConsumer(ctx, rowfeed.ConsumerID{Consumer: "mailer"}); err != nil {
		t.Fatal(err)
	}
	if err := sender(feeds, mails, send).RunOnce(ctx); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(receivers, []string{"ann", "ann", "bob"}) || ids[0] != ids[1] || ids[1] == ids[2] {
		t.Error(receivers, ids)
	}
}
