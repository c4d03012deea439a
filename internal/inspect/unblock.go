package inspect

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
	"github.com/rowfeed/rowfeed/internal/shards"
	"github.com/rowfeed/rowfeed/internal/store"
)

// probeWait bounds the wait for a shard that Unblock takes part in, where only those who wait
// are told of.
const probeWait = 5 * time.Second

// Unblock ends the connection of the transaction that has a shard of a feed with ULIDs, so
// that it is rolled back and the next one gets the shard. It ends nobody of whom the database
// does not say so, and looks again right before: in the moment between the two the
// transaction may end by itself, and its connection begin another, which is then lost.
// Where only those holders are told that somebody waits for, Unblock waits itself.
// Several shards that it could be, and a holder that it cannot be sure of, are refused.
// The error wraps errors.ErrUnsupported where sessions cannot be ended.
func (f *Inspector) Unblock(ctx context.Context, req admin.UnblockRequest) (*admin.Unblocked, error) {
	feed, object := f.DialectFeed(), feedtype.FeedObject(f.Name)
	if feed.ULIDs == nil {
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: object, Cause: "unblock: writers of it do not wait for each other", Err: errors.ErrUnsupported, Next: "`rowfeed status` names who holds it up"}
	}
	holdings, told, err := f.Store.Dialect.Holders(ctx, f.Store.On(), feed)
	if err != nil {
		return nil, f.Store.Fail(object, "look who has its shards", err)
	}
	if told == dialect.ToldNothing {
		_, err := f.Store.Dialect.EndHolder(ctx, f.Store.On(), feed, dialect.Holding{})
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: object, Cause: "unblock: nobody can tell who has a shard", Err: cmp.Or(err, errors.ErrUnsupported), Next: "end the process that has its transaction open"}
	}
	shard, err := f.toUnblock(holdings, told, req.Shard)
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

// toUnblock is the shard that is meant.
func (f *Inspector) toUnblock(holdings []dialect.Holding, told dialect.Told, shard *int) (int, error) {
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
		return 0, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name), Cause: "unblock: several shards are taken: " + strings.Trim(fmt.Sprint(waited), "[]"), Next: "name one of them (--shard)"}
	case told == dialect.ToldAll:
		return 0, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name), Cause: "unblock: nobody is seen to have a shard; a transaction that has taken a new one is not seen", Next: "name the shard (--shard) to have it tried"}
	}
	return 0, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name), Cause: "unblock: nobody waits for a shard, and this database tells who has one only while somebody does", Next: "name the shard (--shard): rowfeed then waits for it itself"}
}

// probe waits for a shard, so that the database tells who has it. The answer is without a holder where
// nobody has it; done ends the wait.
func (f *Inspector) probe(ctx context.Context, shard int) (h dialect.Holding, done func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- f.Store.Once(ctx, dialect.ForRecord, func(_ *sql.Tx, q dialect.Querier) error {
			_, err := f.Store.Dialect.LockShard(ctx, q, f.DialectFeed(), shard, dialect.LockBounds{Wait: probeWait})
			return cmp.Or(err, store.ErrNothing) // rolled back: nobody else is to wait for this
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
				err = &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("feed %q, shard %d", f.Name, shard), Cause: "unblock: a transaction has it, and the database does not say which",
					Next: "`rowfeed status` lists those that it may be; end the right one by the database's own means"}
			default:
				err = f.Fail("wait for the shard", err)
			}
			done()
			return h, nil, err
		case <-time.After(200 * time.Millisecond): // more often some databases would not look anew
		}
		all, _, err := f.Store.Dialect.Holders(ctx, f.Store.On(), f.DialectFeed())
		if err != nil {
			done()
			return h, nil, f.Fail("look who has its shards", err)
		}
		if h = holdingOf(all, shard); h.Holder != nil {
			return h, done, nil
		}
	}
}

// endHolder ends who has been found.
func (f *Inspector) endHolder(ctx context.Context, h dialect.Holding, req admin.UnblockRequest) (*admin.Unblocked, error) {
	object := fmt.Sprintf("feed %q, shard %d", f.Name, h.Shard)
	found := &admin.Unblocked{Shard: h.Shard, Waiting: []admin.Session{}}
	var now int64
	if err := dialect.QueryRow(ctx, f.Store.On(), "SELECT "+f.Store.Dialect.Now(), nil, &now); err != nil {
		return nil, f.Store.Fail(object, "ask for the time", err)
	}
	for _, w := range h.Waiting {
		found.Waiting = append(found.Waiting, session(w, now))
	}
	other := &feedtype.Error{Code: feedtype.Conflict, Object: object, Cause: "unblock: session " + req.Session + " does not have it", Next: "look again with `rowfeed status`"}
	switch {
	case h.Holder == nil && req.Session != "":
		return nil, other
	case h.Holder == nil:
		return found, nil
	case h.Holder.ID == "":
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: object, Cause: "unblock: it is a prepared transaction that has it, which no session stands for: " + h.Holder.Statement, Next: "end it with COMMIT PREPARED or ROLLBACK PREPARED"}
	case req.Session != "" && req.Session != h.Holder.ID:
		other.Cause += "; it is " + shards.SessionText(*h.Holder)
		return nil, other
	}
	holder := session(*h.Holder, now)
	if found.Holder = &holder; req.DryRun {
		return found, nil
	}
	ended, err := f.Store.Dialect.EndHolder(ctx, f.Store.On(), f.DialectFeed(), h)
	if err != nil {
		return nil, f.Store.Fail(object, "end "+shards.SessionText(*h.Holder), err)
	}
	if !ended {
		return nil, &feedtype.Error{Code: feedtype.Conflict, Object: object, Cause: "unblock: " + shards.SessionText(*h.Holder) + " has ended its transaction meanwhile; nothing was done", Next: "look again with `rowfeed status`"}
	}
	found.Ended = true
	return found, nil
}
