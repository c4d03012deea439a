package wire

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink/sqlmirror"
)

// retry runs a handler that fails once, and is called again with the same entries.
func (w *recording) retry(f *rowfeed.Feed) {
	w.sorted("fail once, and handle the entries at the second attempt")
	c := w.failsOnce("again", f)
	c.Options.Retry = rowfeed.Retry{MaxAttempts: 2, Backoff: time.Millisecond, MaxBackoff: time.Millisecond}
	w.must(c.RunOnce(w.Ctx))
	w.must(w.drop("again"))
}

func (w *recording) drop(consumer string) error {
	_, err := w.RF.Admin().DropConsumer(w.Ctx, rowfeed.ConsumerID{Consumer: consumer})
	return err
}

// failsOnce returns a consumer whose handler fails at its first call.
func (w *recording) failsOnce(name string, f *rowfeed.Feed) *rowfeed.Consumer {
	var first sync.Once
	return &rowfeed.Consumer{Name: name, Source: f, DB: w.RF, Options: rowfeed.ConsumerOptions{NoReadAhead: true},
		Handle: func(context.Context, *sql.Tx, []rowfeed.Entry) (err error) {
			first.Do(func() { err = errors.New("not yet") })
			return err
		}}
}

// mirror relays the feed into a table of the same database.
func (w *recording) mirror(f *rowfeed.Feed, l layout) {
	w.silently(func() { w.Exec(w.Exact(strings.Replace(l.create, "TABLE kv", "TABLE mirror", 1))) })
	w.sorted("relay into a mirror table")
	s, err := sqlmirror.New(w.Ctx, sqlmirror.Config{Pool: w.Pool, Dialect: w.Dialect, DB: w.RF, Table: "mirror"})
	w.must(err)
	w.must((&relays.Relay{Name: "mirror", Source: f, Sink: s, Limit: 3}).RunOnce(w.Ctx))
	w.must(w.drop("mirror"))
}
