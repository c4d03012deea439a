package operate

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// probeWait bounds the wait of Unblock for a shard, on a database that names only holders for which others wait.
const probeWait = 5 * time.Second

// Unblock is admin.Inspector.Unblock.
func (f *Inspector) Unblock(ctx context.Context, req admin.UnblockRequest) (*admin.Unblocked, error) {
	feed, object := f.DialectFeed(), feedtype.FeedObject(f.Name)
	if feed.ULIDs == nil {
		return nil, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: object,
			Cause:  "unblock: writers of this feed do not wait for each other",
			Err:    errors.ErrUnsupported,
			Next:   "`rowfeed status` names the transactions that delay the feed",
		}
	}
	holdings, named, err := ulidfeed.Holders(ctx, f.Feed)
	if err != nil {
		return nil, f.Store.Fail(object, "list the holders of its shards", err)
	}
	if named == dialect.HoldersNone {
		return nil, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: object,
			Cause:  "unblock: the database does not tell which session holds a shard",
			Err: fmt.Errorf("it has no sessions that another process could end: %w",
				errors.ErrUnsupported),
			Next: "end the process whose transaction is open",
		}
	}
	shard, err := f.toUnblock(holdings, named, req.Shard)
	if err != nil {
		return nil, err
	}
	h := holdingOf(holdings, shard)
	if h.Holder == nil {
		var done func()
		if h, done, err = f.probe(ctx, shard); err != nil {
			return nil, err
		}
		defer done()
	}
	return f.endHolder(ctx, h, req)
}

func holdingOf(all []dialect.Holding, shard int) dialect.Holding {
	for _, h := range all {
		if h.Shard == shard {
			return h
		}
	}
	return dialect.Holding{Shard: shard}
}

// toUnblock returns the requested shard, or the only one that can be meant.
func (f *Inspector) toUnblock(holdings []dialect.Holding, named dialect.NamedHolders, shard *int) (int, error) {
	if shard != nil {
		return *shard, nil
	}
	var waited, held []int
	for _, h := range holdings {
		if len(h.Waiting) > 0 {
			waited = append(waited, h.Shard)
		}
		held = append(held, h.Shard)
	}
	if len(waited) == 0 {
		waited = held
	}
	switch {
	case len(waited) == 1:
		return waited[0], nil
	case len(waited) > 1:
		return 0, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "unblock: transactions hold several shards: " + strings.Trim(fmt.Sprint(waited), "[]"),
			Next:   "name one of them (--shard)",
		}
	case named == dialect.HoldersAll:
		return 0, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause: "unblock: no transaction is known to hold a shard; " +
				"the first transaction of a new shard is not visible",
			Next: "name the shard (--shard): rowfeed then tries to lock it",
		}
	}
	return 0, &feedtype.Error{
		Code:   feedtype.Refused,
		Object: feedtype.FeedObject(f.Name),
		Cause: "unblock: no transaction waits for a shard, and this database names a holder only while another " +
			"transaction waits",
		Next: "name the shard (--shard): rowfeed then waits for it",
	}
}

// probe waits for a shard, so that the database names its holder. The answer has no holder if the shard is free. done
// ends the wait.
func (f *Inspector) probe(ctx context.Context, shard int) (h dialect.Holding, done func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- f.Store.Once(ctx, dialect.ForRecord, func(_ *sql.Tx, q dialect.Querier) error {
			_, err := f.Store.Dialect.LockShard(ctx, q, f.DialectFeed(), shard, dialect.LockBounds{Wait: probeWait})
			return cmp.Or(err, store.ErrNothing) // rolled back, so that no other transaction waits for this one
		})
	}()
	done = func() { cancel(); <-ended }
	for {
		select {
		case err := <-ended:
			ended <- err
			switch {
			case errors.Is(err, store.ErrNothing):
				return dialect.Holding{Shard: shard}, done, nil
			case f.Store.Dialect.Classify(err) == dialect.ClassLockTimeout:
				err = &feedtype.Error{
					Code:   feedtype.Refused,
					Object: fmt.Sprintf("feed %q, shard %d", f.Name, shard),
					Cause:  "unblock: a transaction holds the shard, and the database does not tell which one",
					Next: "`rowfeed status` lists the transactions that may hold it; end the right one with the " +
						"database's own commands",
				}
			default:
				err = f.Fail("wait for the shard", err)
			}
			done()
			return h, nil, err
		case <-time.After(200 * time.Millisecond): // some databases do not update their list more often
		}
		all, _, err := ulidfeed.Holders(ctx, f.Feed)
		if err != nil {
			done()
			return h, nil, f.Fail("list the holders of its shards", err)
		}
		if h = holdingOf(all, shard); h.Holder != nil {
			return h, done, nil
		}
	}
}

// endHolder ends the session that was found.
func (f *Inspector) endHolder(
	ctx context.Context, h dialect.Holding, req admin.UnblockRequest,
) (*admin.Unblocked, error) {
	object := fmt.Sprintf("feed %q, shard %d", f.Name, h.Shard)
	found := &admin.Unblocked{Shard: h.Shard, Waiting: []admin.Session{}}
	now, err := f.Store.Clock(ctx, f.Store.On())
	if err != nil {
		return nil, f.Store.Fail(object, "read the database's time", err)
	}
	for _, w := range h.Waiting {
		found.Waiting = append(found.Waiting, session(w, now))
	}
	conflict := &feedtype.Error{
		Code:   feedtype.Conflict,
		Object: object,
		Cause:  "unblock: session " + req.Session + " does not hold the shard",
		Next:   "run `rowfeed status` again",
	}
	switch {
	case h.Holder == nil && req.Session != "":
		return nil, conflict
	case h.Holder == nil:
		return found, nil
	case h.Holder.ID == "":
		return nil, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: object,
			Cause:  "unblock: a prepared transaction, which has no session, holds the shard: " + h.Holder.Statement,
			Next:   "end it with COMMIT PREPARED or ROLLBACK PREPARED",
		}
	case req.Session != "" && req.Session != h.Holder.ID:
		conflict.Cause += "; its holder is " + ulidfeed.SessionText(*h.Holder)
		return nil, conflict
	}
	holder := session(*h.Holder, now)
	if found.Holder = &holder; req.DryRun {
		return found, nil
	}
	ended, err := f.Store.Dialect.Sessions.EndHolder(ctx, f.Store.On(), f.DialectFeed(), h)
	if err != nil {
		return nil, f.Store.Fail(object, "end "+ulidfeed.SessionText(*h.Holder), err)
	}
	if !ended {
		return nil, &feedtype.Error{
			Code:   feedtype.Conflict,
			Object: object,
			Cause: "unblock: " + ulidfeed.SessionText(*h.Holder) + " has ended its transaction meanwhile; no session " +
				"was ended",
			Next: "run `rowfeed status` again",
		}
	}
	found.Ended = true
	return found, nil
}
