package wire

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// database uses what needs no feed: rowfeed's tables, leases, groups, tokens, the audit log.
func (w *recording) database() {
	w.step("migrate")
	w.Migrate()
	w.step("migrate again, and list the migrations")
	w.Migrate()
	_, err := w.RF.Admin().Migrations(w.Ctx)
	w.must(err)

	w.step("acquire, renew, assert and release a lease")
	lease := w.RF.Lease("wire", time.Minute)
	claim, err := lease.TryAcquire(w.Ctx)
	w.must(err)
	w.must(claim.Renew(w.Ctx))
	w.inTx(func(tx *sql.Tx) error { return claim.Assert(w.Ctx, rowfeed.InTx(tx)) })
	_, err = w.RF.Lease("wire", time.Minute).TryAcquire(w.Ctx)
	w.WantCode(err, rowfeed.LeaseTaken)
	w.must(claim.Release(w.Ctx))
	w.step("list the leases, and take one from its holder")
	claim, err = lease.Acquire(w.Ctx)
	w.must(err)
	_, err = w.RF.Admin().CurrentLeases(w.Ctx)
	w.must(err)
	_, err = w.RF.Admin().ReleaseLease(w.Ctx, "wire", claim.Epoch())
	w.must(err)

	w.sorted("share the jobs of a group")
	w.until(func(ctx context.Context, done func()) error {
		return w.RF.Group("wire", 1, time.Minute).Run(ctx, func(ctx context.Context, j *rowfeed.Job) error {
			done()
			return suite.UntilAsked(ctx, j)
		})
	})

	w.step("make, look up, list and revoke a token")
	text, made, err := w.RF.Admin().AddToken(w.Ctx, admin.TokenSpec{Name: "wire", Expires: time.Hour,
		Grants: []admin.TokenGrant{{Feed: admin.EveryFeed, Right: admin.RightRead}}})
	w.must(err)
	_, err = w.RF.Admin().TokenOf(w.Ctx, text)
	w.must(err)
	_, err = w.RF.Admin().StillHold(w.Ctx, []*admin.Token{made})
	w.must(err)
	_, err = w.RF.Admin().Tokens(w.Ctx)
	w.must(err)
	_, err = w.RF.Admin().RevokeToken(w.Ctx, "wire")
	w.must(err)

	w.step("audit an act, list and purge the log")
	w.must(w.RF.Admin().Audited(w.Ctx, admin.Act{Actor: "wire", Act: "test", Object: "none"},
		func(context.Context) error { return nil }))
	_, err = w.RF.Admin().Acts(w.Ctx, 0, 0)
	w.must(err)
	_, err = w.RF.Admin().Acts(w.Ctx, 1000, 1)
	w.must(err)
	_, err = w.RF.Admin().PurgeActs(w.Ctx, 24*time.Hour)
	w.must(err)

	w.step("remove the tables")
	w.must(w.RF.MigrateDown(w.Ctx))
}

// layout uses everything that one kind of feed has.
func (w *recording) layout(l layout) {
	l.spec.Name, l.spec.Table = "kv", "kv"
	w.Exec(w.Exact(l.create))
	blocking, sequence := l.spec.Mode == rowfeed.ModeBlocking, l.spec.Mode == ""
	if blocking {
		w.Exec("CREATE UNIQUE INDEX kv_feed ON kv (v, u)")
	} else {
		w.Exec(l.row(1), l.row(2)) // rows from before the feed
	}

	w.step("add the feed")
	w.Add(l.spec)
	w.step("add it again, list the feeds, describe it")
	f := w.Add(l.spec)
	_, err := w.RF.Feeds(w.Ctx)
	w.must(err)
	_, err = f.Info(w.Ctx)
	w.must(err)

	w.step("write")
	for id := 3; id <= 8; id++ {
		w.write(f, l, id)
	}
	w.step("publish first")
	w.Publish(f)
	w.step("publish without changes")
	w.Publish(f)
	if sequence {
		w.Exec(w.update("1 = 1"), "DELETE FROM kv WHERE "+l.at(3))
	}
	w.write(f, l, 9)
	w.step("publish again")
	w.Publish(f)
	if !blocking { // a blocking feed has nothing to publish
		w.step("run a publisher")
		w.untilRepeated(f.RunPublisher)
	}

	w.read(f, l)
	w.consume(f, l)
	w.retry(f)
	if l.spec.Mode == "" {
		w.mirror(f, l)
	}
	w.operate(f, l)

	w.step("drop the feed")
	w.must(w.RF.DropFeed(w.Ctx, "kv"))
}

// read fetches pages of every kind.
func (w *recording) read(f *rowfeed.Feed, l layout) {
	parts := []rowfeed.Shards{{}}
	if l.spec.Mode != "" {
		parts = []rowfeed.Shards{rowfeed.One(1)}
	} else if l.spec.DataShards > 1 {
		parts = append(parts, rowfeed.Part(0, 2), rowfeed.One(1))
	}
	for _, part := range parts {
		w.step("read pages of the part: " + part.String())
		page := func(req rowfeed.Request) rowfeed.Page {
			w.Helper()
			req.Shards = part
			page, err := f.Fetch(w.Ctx, req)
			w.must(err)
			return page
		}
		first := page(rowfeed.Request{Limit: 2})
		next := page(rowfeed.Request{After: first.Cursor, Limit: 2})
		last := page(rowfeed.Request{After: next.Cursor})
		page(rowfeed.Request{After: last.Cursor})
		page(rowfeed.Request{After: rowfeed.Now})
		if l.spec.Capture != feedtype.CaptureColumn { // column capture does not store when a row was published
			page(rowfeed.Request{After: rowfeed.At(time.Unix(0, 0))})
		}
		w.step("wait for an entry of the part: " + part.String())
		w.untilRepeated(func(ctx context.Context) error {
			_, err := f.Fetch(ctx, rowfeed.Request{After: last.Cursor, Shards: part, Wait: time.Minute})
			if ctx.Err() != nil {
				return nil
			}
			return err
		})
		w.step("read a consistent page of the part: " + part.String())
		_, err := f.Fetch(w.Ctx, rowfeed.Request{After: first.Cursor, Shards: part, Consistent: true})
		if l.spec.Mode == "" {
			w.must(err)
		}
	}
	if l.spec.Mode != "" {
		w.step("tell how far the shards are")
		_, err := f.Standings(w.Ctx, "", 0)
		w.must(err)
	}
}

// consume runs a consumer that sets an entry aside, and operates it.
func (w *recording) consume(f *rowfeed.Feed, l layout) {
	failing := true
	c := &rowfeed.Consumer{Name: "wire", Source: f, DB: w.RF,
		Options: rowfeed.ConsumerOptions{
			Limit: 2, NoReadAhead: true, Lease: time.Hour, Retry: rowfeed.Retry{MaxAttempts: 1},
		},
		OnFailure: rowfeed.SetAside,
		Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				if key := e.Key.AppendJSON(nil); failing && strings.Contains(string(key), "4") {
					return errors.New("this row is not wanted")
				}
			}
			return nil
		}}
	id := rowfeed.ConsumerID{Consumer: "wire", Feed: "kv"}
	n := func(_ int64, err error) { w.Helper(); w.must(err) }
	w.sorted(
		"consume, set an entry aside, list it and try it again",
	) // a consumer polls for released letters once a second
	w.must(c.RunOnce(w.Ctx))
	w.must(c.RunOnce(w.Ctx))
	_, err := w.RF.Admin().Consumers(w.Ctx, id)
	w.must(err)
	list, err := w.RF.Admin().DeadLetters(w.Ctx, suite.Letters(id, ""))
	w.must(err)
	if len(list.Letters) != 1 {
		w.Fatalf("%d dead letters", len(list.Letters))
	}
	key := string(list.Letters[0].Key)
	_, err = w.RF.Admin().DeadLetters(w.Ctx, rowfeed.LetterQuery{Key: key})
	w.must(err)
	failing = false
	n(w.RF.Admin().RetryDeadLetters(w.Ctx, suite.Letters(id, key), nil))
	w.must(c.RunOnce(w.Ctx))
	w.step("drop dead letters")
	n(w.RF.Admin().DropDeadLetters(w.Ctx, suite.Letters(id, ""), nil))
	w.step("pause, resume, seek and reset the consumer")
	n(w.RF.Admin().PauseConsumer(w.Ctx, id))
	_, err = w.RF.Admin().PausedShards(w.Ctx, id)
	w.must(err)
	n(w.RF.Admin().ResumeConsumer(w.Ctx, id))
	n(w.RF.Admin().SeekConsumer(w.Ctx, id, rowfeed.Now))
	n(w.RF.Admin().ResetConsumer(w.Ctx, id))
	n(w.RF.Admin().ConsumerEpoch(w.Ctx, "wire", "kv"))
	_, err = w.RF.Admin().ConsumerShardCount(w.Ctx, "wire", "kv")
	w.must(err)
	if l.spec.DataShards > 1 || l.spec.Mode != "" {
		w.sorted("consume with two shards")
		c.ShardCount = 2
		w.must(c.RunOnce(w.Ctx))
	}
	w.step("deliver outside of transactions, under an epoch")
	deliver := &rowfeed.RelayConsumer{Epoch: 7, Consumer: rowfeed.Consumer{
		Name: "deliver", Source: f, DB: w.RF, Options: rowfeed.ConsumerOptions{Limit: 2, NoReadAhead: true},
		Deliver: func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error) { return nil, nil },
	}}
	w.must(deliver.RunOnce(w.Ctx))
	w.step("note an entry as processed, and forget it")
	page, err := f.Fetch(w.Ctx, rowfeed.Request{Limit: 1, Shards: l.shard()})
	w.must(err)
	w.inTx(func(tx *sql.Tx) error {
		_, err := w.RF.MarkProcessed(w.Ctx, rowfeed.InTx(tx), "wire", "kv", page.Entries[0])
		return err
	})
	n(w.RF.Admin().PurgeProcessed(w.Ctx, "wire", "kv", page.Cursor))
	w.step("drop the consumer")
	n(w.RF.Admin().DropConsumer(w.Ctx, id))
}

// operate uses what operators have for a feed.
func (w *recording) operate(f *rowfeed.Feed, l layout) {
	blocking, sequence := l.spec.Mode == rowfeed.ModeBlocking, l.spec.Mode == ""
	w.step("status")
	_, err := f.Admin().Status(w.Ctx)
	w.must(err)
	_, err = f.Admin().Backlog(w.Ctx, 10)
	w.must(err)
	_, _, err = f.Admin().Blockers(w.Ctx)
	w.must(err)
	if !sequence {
		w.step("who has the shards")
		_, _, err = f.Admin().Shards(w.Ctx)
		w.must(err)
		// Databases that cannot end sessions refuse it.
		_, _ = f.Admin().Unblock(w.Ctx, admin.UnblockRequest{DryRun: true})
	}
	w.step("verify")
	_, err = f.Admin().Verify(w.Ctx)
	w.must(err)
	_, err = f.Admin().VerifyParts(w.Ctx)
	w.must(err)
	_, err = f.Admin().VerifyPartitions(w.Ctx)
	w.must(err)

	if sequence {
		w.step("republish, unpublish and delete keys")
		_, err = f.Admin().UnknownKeys(w.Ctx, l.key(1))
		w.must(err)
		own := func(do func(tx rowfeed.Tx) error) { w.Helper(); w.must(f.InOwnTx(w.Ctx, do)) }
		own(func(tx rowfeed.Tx) error { return f.Republish(w.Ctx, tx, l.key(1), l.key(2)) })
		own(func(tx rowfeed.Tx) error { return f.Unpublish(w.Ctx, tx, l.key(5)) })
		own(func(tx rowfeed.Tx) error { return f.Delete(w.Ctx, tx, l.key(6)) })
		_, err = f.Admin().CountWhere(w.Ctx, "v > 0")
		w.must(err)
		_, err = f.Admin().RepublishWhere(w.Ctx, "v > 0", 2, nil)
		w.must(err)
		w.Publish(f)
		w.step("purge deletes")
		w.Exec("UPDATE rowfeed_positions_kv SET published_at = 0 WHERE deleted = 1")
	} else if !blocking {
		w.step("purge entries, and back-fill rows")
		w.must(f.Admin().SetRetention(w.Ctx, rowfeed.Retention{Count: 3}))
	}
	_, err = f.Admin().Purge(w.Ctx)
	if !blocking {
		w.must(err)
	}
	if !sequence && !blocking {
		w.must(f.Admin().SetRetention(w.Ctx, rowfeed.Retention{}))
		_, err = f.Admin().BackFill(w.Ctx, nil)
		w.refused(err) // a cursor behind a purge is refused
	}

	w.step("check")
	_, err = f.Admin().Check(w.Ctx)
	w.must(err)
	w.step("repair")
	w.damage(l)
	if _, err = f.Admin().Repair(w.Ctx); sequence {
		w.must(err)
		w.Publish(f)
	}
	w.step("upgrade")
	w.damageSchema(f, l)
	_, err = f.Admin().Upgrade(w.Ctx)
	w.must(err)
	if l.spec.Mode == "" {
		w.step("divide by another number of data shards")
		_, err = f.Admin().Reshard(w.Ctx, 8, nil)
		w.must(err)
		w.Publish(f)
	}
	w.step("adopt the database, and begin a new generation")
	_, err = f.Admin().AdoptDatabase(w.Ctx)
	w.must(err)
	_, err = f.Admin().Bump(w.Ctx)
	w.must(err)
	if w.Has.Logins {
		w.grants(f)
	}
}

// grants gives a login rights on the feed, and revokes them.
func (w *recording) grants(f *rowfeed.Feed) {
	w.step("grant and revoke")
	w.Exec(w.Text("wire.create_login", w.DB.Name))
	defer w.Exec(w.Text("wire.drop_login", w.DB.Name))
	logins := rowfeed.Grants{Readers: []string{w.Text("wire.login", w.DB.Name)}}
	if f.Capture() != feedtype.CaptureTrigger {
		logins.Writers = logins.Readers
	}
	w.must(f.Admin().Grant(w.Ctx, logins))
	w.must(f.Admin().Revoke(w.Ctx, logins))
}

// damage does something that repair mends.
func (w *recording) damage(l layout) {
	switch {
	case l.spec.Mode == rowfeed.ModeOutbox:
		w.Exec(l.row(90))
	case l.spec.Capture == feedtype.CaptureColumn:
		w.DB.Exec(w.T, "UPDATE kv SET feed_sync_id = 3 WHERE id IN (1, 2)")
	case l.spec.Mode == "":
		w.DB.Exec(w.T, "DELETE FROM rowfeed_positions_kv WHERE "+l.at(1))
	}
}

// damageSchema drops a trigger, if the feed has one.
func (w *recording) damageSchema(f *rowfeed.Feed, l layout) {
	if l.spec.Capture == feedtype.CaptureApp || l.spec.Capture == feedtype.CaptureColumn ||
		l.spec.Mode == rowfeed.ModeBlocking || l.name == "outbox" {
		return
	}
	names := w.Dialect.TriggerNames(&dialect.Feed{Name: "kv", Names: dialect.Names{Prefix: "rowfeed_"}})
	w.Exec(w.Text("wire.drop_trigger", w.Dialect.Quote(names[0])))
}

// row returns the statement that inserts a row.
func (l layout) row(id int) string {
	return "INSERT INTO kv VALUES (" + fmt.Sprintf(l.insert, id) + ")"
}

func (l layout) at(id int) string { return fmt.Sprintf(l.where, id) }

// shard returns a part that has rows.
func (l layout) shard() rowfeed.Shards {
	if l.spec.Mode != "" {
		return rowfeed.One(1)
	}
	return rowfeed.Shards{}
}

func (w *recording) update(where string) string { return "UPDATE kv SET v = v + 1 WHERE " + where }

// write inserts a row as the layout's writers do.
func (w *recording) write(f *rowfeed.Feed, l layout, id int) {
	w.Helper()
	switch {
	case l.spec.Mode == rowfeed.ModeBlocking:
		w.inTx(func(tx *sql.Tx) error {
			u, err := f.Lock(w.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}})
			if err != nil {
				return err
			}
			at, err := u.At(1, 0)
			if err != nil {
				return err
			}
			w.silently(func() { _, err = tx.ExecContext(w.Ctx, w.Text("wire.insert_ulid"), id, at) })
			return errors.Join(err, u.Verify(w.Ctx))
		})
	case l.spec.Mode == rowfeed.ModeOutbox && l.spec.Capture == "":
		w.inTx(func(tx *sql.Tx) error {
			var err error
			w.silently(func() { _, err = tx.ExecContext(w.Ctx, l.row(id)) })
			record := rowfeed.OutboxRecord{Shard: 1, Key: l.key(id)}
			return errors.Join(err, f.AppendOutbox(w.Ctx, rowfeed.InTx(tx), record))
		})
	default:
		w.Exec(l.row(id))
	}
}

// inTx runs do in a transaction of the tapped pool.
func (w *recording) inTx(do func(tx *sql.Tx) error) {
	w.Helper()
	var tx *sql.Tx
	w.silently(func() {
		var err error
		tx, err = w.Pool.BeginTx(w.Ctx, nil)
		w.must(err)
	})
	if err := do(tx); err != nil {
		_ = tx.Rollback()
		w.Fatal(err)
	}
	w.must(tx.Commit())
}

// until runs a function until it has called done.
func (w *recording) until(run func(ctx context.Context, done func()) error) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Ctx)
	defer cancel()
	w.must(run(ctx, sync.OnceFunc(cancel)))
}

// untilRepeated runs a function until it sends only statements that were sent before.
func (w *recording) untilRepeated(run func(ctx context.Context) error) {
	w.Helper()
	w.until(func(ctx context.Context, done func()) error {
		w.repeats(done)
		defer w.repeats(nil)
		return run(ctx)
	})
}
