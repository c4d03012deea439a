package publish

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Elsewhere is the Positioner of a feed whose positions a publisher gives that is not rowfeed's. It changes nothing.
type Elsewhere struct{ *catalog.Feed }

// Pending returns a query for the end of that: rowfeed is to give the positions from now on.
func (f *Elsewhere) Pending() string {
	return dialect.NewScript(f.Store.Dialect.Syntax).Fill(f.Statement(statements, "published_here"), elsewhereState)
}

var elsewhereState = dialect.Args{"elsewhere": catalog.StateElsewhere}

// Waiting implements Positioner.
func (*Elsewhere) Waiting(context.Context) (string, error) { return "", nil }

// Pass implements Positioner.
func (f *Elsewhere) Pass(context.Context, int, bool) (feedtype.PublishEvent, error) {
	return feedtype.PublishEvent{Feed: f.Name}, nil
}

// Tell implements Positioner.
func (*Elsewhere) Tell(context.Context, error) {}

// CatchUp refuses consistent requests.
func (f *Elsewhere) CatchUp(context.Context, int) error {
	return &feedtype.Error{
		Code:   feedtype.InvalidRequest,
		Object: feedtype.FeedObject(f.Name),
		Param:  "consistent",
		Cause:  "consistent: another publisher gives its positions, and rowfeed cannot make it publish",
		Next:   "leave the parameter out, or run `rowfeed feed upgrade " + f.Name + " --published-here`",
	}
}

// Purge implements Positioner. Nothing of the feed is purged.
func (*Elsewhere) Purge(context.Context) (int, error) { return 0, nil }

// readTakeover reads the feed's record again if another publisher gave positions when it was last read, and does so no
// more.
func readTakeover(ctx context.Context, f *catalog.Feed) error {
	if !f.Record.Load().PublishedElsewhere {
		return nil
	}
	elsewhere, err := isElsewhere(ctx, f, f.Store.On())
	if err != nil || elsewhere {
		return err
	}
	return f.Reload(ctx)
}

func isElsewhere(ctx context.Context, f *catalog.Feed, q dialect.Querier) (bool, error) {
	var n int
	err := dialect.One(ctx, q, f.Store.Dialect.Syntax, f.Statement(statements, "published_here"), elsewhereState, &n)
	if errors.Is(err, store.ErrNoRows) {
		return true, nil
	}
	return false, f.Fail("read which publisher gives its positions", err)
}

// refuseElsewhere refuses to record what the other publisher of a feed does not publish.
func (f *Recorder) refuseElsewhere(ctx context.Context, q dialect.Querier, doing string) error {
	if !f.Record.Load().PublishedElsewhere {
		return nil
	}
	elsewhere, err := isElsewhere(ctx, f.Feed, q)
	if err != nil || !elsewhere {
		return err
	}
	return &feedtype.Error{
		Code:   feedtype.Refused,
		Object: feedtype.FeedObject(f.Name),
		Cause:  doing + ": another publisher gives its positions, and publishes only rows whose feed_sync_id is NULL",
		Err:    errors.ErrUnsupported,
		Next: "set feed_sync_id to NULL for a row; to publish a delete, first run `rowfeed feed upgrade " + f.Name +
			" --published-here`",
	}
}
