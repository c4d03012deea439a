package conformance

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
)

// database does what needs no feed: rowfeed's tables, leases, groups, tokens, the audit log.
func (w *recording) database() {
	w.step("migrate")
	w.migrate()
	w.step("migrate again, and list the migrations")
	w.migrate()
	_, err := w.rf.Admin().Migrations(w.ctx)
	w.must(err)

	w.step("acquire, renew, assert and release a lease")
	lease := w.rf.Lease("wire", time.Minute)
	term, err := lease.TryAcquire(w.ctx)
	w.must(err)
	w.must(term.Renew(w.ctx))
	w.inTx(func(tx *sql.Tx) error { return term.Assert(w.ctx, rowfeed.InTx(tx)) })
	_, err = w.rf.Lease("wire", time.Minute).TryAcquire(w.ctx)
	w.wantCode(err, rowfeed.LeaseTaken)
	w.must(term.Release(w.ctx))
	w.step("list the leases, and take one from its holder")
	term, err = lease.Acquire(w.ctx)
	w.must(err)
	_, err = w.rf.Admin().CurrentLeases(w.ctx)
	w.must(err)
	_, err = w.rf.Admin().ReleaseLease(w.ctx, "wire", term.Epoch())
	w.must(err)

	w.sorted("share the jobs of a group")
	w.until(func(ctx context.Context, done func()) error {
		return w.rf.Group("wire", 1, time.Minute).Run(ctx, func(ctx context.Context, j *rowfeed.Job) error {
			done()
			return untilAsked(ctx, j)
		})
	})

	w.step("make, look up, list and revoke a token")
	text, made, err := w.rf.Admin().AddToken(w.ctx, admin.TokenSpec{Name: "wire", Expires: time.Hour,
		Grants: []admin.TokenGrant{{Feed: admin.EveryFeed, Right: admin.RightRead}}})
	w.must(err)
	_, err = w.rf.Admin().TokenOf(w.ctx, text)
	w.must(err)
	_, err = w.rf.Admin().StillHold(w.ctx, []*admin.Token{made})
	w.must(err)
	_, err = w.rf.Admin().Tokens(w.ctx)
	w.must(err)
	_, err = w.rf.Admin().RevokeToken(w.ctx, "wire")
	w.must(err)

	w.step("audit an act, list and purge the log")
	w.must(w.rf.Admin().Audited(w.ctx, admin.Act{Actor: "wire", Act: "test", Object: "none"},
		func(context.Context) error { return nil }))
	_, err = w.rf.Admin().Acts(w.ctx, 0, 0)
	w.must(err)
	_, err = w.rf.Admin().Acts(w.ctx, 1000, 1)
	w.must(err)
	_, err = w.rf.Admin().PurgeActs(w.ctx, 24*time.Hour)
	w.must(err)

	w.step("remove the tables")
	w.must(w.rf.MigrateDown(w.ctx))
}

// layout does everything with one feed of a kind.
func (w *recording) layout(l layout) {
	l.spec.Name, l.spec.Table = "kv", "kv"
	w.exec(w.exact(l.create))
	blocking, sequence := l.spec.Mode == rowfeed.ModeBlocking, l.spec.Mode == ""
	if blocking {
		w.exec("CREATE UNIQUE INDEX kv_feed ON kv (v, u)")
	} else {
		w.exec(l.row(1), l.row(2)) // are there before the feed
	}

	w.step("add the feed")
	w.add(l.spec)
	w.step("add it again, list the feeds, describe it")
	f := w.add(l.spec)
	_, err := w.rf.Feeds(w.ctx)
	w.must(err)
	_, err = f.Info(w.ctx)
	w.must(err)

	w.step("write")
	for id := 3; id <= 8; id++ {
		w.write(f, l, id)
	}
	w.step("publish first")
	w.publish(f)
	w.step("publish without changes")
	w.publish(f)
	if sequence {
		w.exec(w.update("1 = 1"), "DELETE FROM kv WHERE "+l.at(3))
	}
	w.write(f, l, 9)
	w.step("publish again")
	w.publish(f)
	if !blocking { // has nothing to publish
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
	w.must(w.rf.DropFeed(w.ctx, "kv"))
}

// read asks for pages of every kind.
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
			page, err := f.Fetch(w.ctx, req)
			w.must(err)
			return page
		}
		first := page(rowfeed.Request{Limit: 2})
		next := page(rowfeed.Request{After: first.Cursor, Limit: 2})
		last := page(rowfeed.Request{After: next.Cursor})
		page(rowfeed.Request{After: last.Cursor})
		page(rowfeed.Request{After: rowfeed.Now})
		if l.spec.Capture != feedtype.CaptureColumn { // which does not tell when a row was published
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
		_, err := f.Fetch(w.ctx, rowfeed.Request{After: first.Cursor, Shards: part, Consistent: true})
		if l.spec.Mode == "" {
			w.must(err)
		}
	}
	if l.spec.Mode != "" {
		w.step("tell how far the shards are")
		_, err := f.Standings(w.ctx, "", 0)
		w.must(err)
	}
}

// consume runs a consumer, has it set an entry aside, and operates it.
func (w *recording) consume(f *rowfeed.Feed, l layout) {
	failing := true
	c := &rowfeed.Consumer{Name: "wire", Source: f, DB: w.rf, Limit: 2, NoReadAhead: true, Lease: time.Hour,
		OnFailure: rowfeed.SetAside, Retry: rowfeed.Retry{MaxAttempts: 1},
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
	w.sorted("consume, set an entry aside, list it and try it again") // a consumer looks for retries once a second
	w.must(c.RunOnce(w.ctx))
	w.must(c.RunOnce(w.ctx))
	_, err := w.rf.Admin().Consumers(w.ctx, id)
	w.must(err)
	letters, err := w.rf.Admin().DeadLetters(w.ctx, id, nil)
	w.must(err)
	if len(letters) != 1 {
		w.Fatalf("%d dead letters", len(letters))
	}
	_, err = w.rf.Admin().DeadLetters(w.ctx, rowfeed.ConsumerID{}, letters[0].Key)
	w.must(err)
	failing = false
	n(w.rf.Admin().RetryDeadLetters(w.ctx, id, letters[0].Key))
	w.must(c.RunOnce(w.ctx))
	w.step("drop dead letters")
	n(w.rf.Admin().DropDeadLetters(w.ctx, id, nil))
	w.step("pause, resume, seek and reset the consumer")
	n(w.rf.Admin().PauseConsumer(w.ctx, id))
	_, err = w.rf.Admin().PausedShards(w.ctx, id)
	w.must(err)
	n(w.rf.Admin().ResumeConsumer(w.ctx, id))
	n(w.rf.Admin().SeekConsumer(w.ctx, id, rowfeed.Now))
	n(w.rf.Admin().ResetConsumer(w.ctx, id))
	n(w.rf.Admin().ConsumerEpoch(w.ctx, "wire", "kv"))
	_, err = w.rf.Admin().ConsumerShardCount(w.ctx, "wire", "kv")
	w.must(err)
	if l.spec.DataShards > 1 || l.spec.Mode != "" {
		w.sorted("consume with two shards")
		c.ShardCount = 2
		w.must(c.RunOnce(w.ctx))
	}
	w.step("deliver outside of transactions, under an epoch")
	w.must((&rowfeed.Consumer{Name: "deliver", Source: f, DB: w.rf, Limit: 2, NoReadAhead: true, Epoch: 7,
		Deliver: func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error) { return nil, nil }}).RunOnce(w.ctx))
	w.step("note an entry as processed, and forget it")
	page, err := f.Fetch(w.ctx, rowfeed.Request{Limit: 1, Shards: l.shard()})
	w.must(err)
	w.inTx(func(tx *sql.Tx) error {
		_, err := w.rf.MarkProcessed(w.ctx, rowfeed.InTx(tx), "wire", "kv", page.Entries[0])
		return err
	})
	n(w.rf.Admin().PurgeProcessed(w.ctx, "wire", "kv", page.Cursor))
	w.step("drop the consumer")
	n(w.rf.Admin().DropConsumer(w.ctx, id))
}

// operate does what operators do with a feed.
func (w *recording) operate(f *rowfeed.Feed, l layout) {
	blocking, sequence := l.spec.Mode == rowfeed.ModeBlocking, l.spec.Mode == ""
	w.step("status")
	_, err := f.Admin().Status(w.ctx)
	w.must(err)
	_, err = f.Admin().Backlog(w.ctx, 10)
	w.must(err)
	_, _, err = f.Admin().Blockers(w.ctx)
	w.must(err)
	if !sequence {
		w.step("who has the shards")
		_, _, err = f.Admin().Shards(w.ctx)
		w.must(err)
		_, _ = f.Admin().Unblock(w.ctx, admin.UnblockRequest{DryRun: true}) // refused by databases that cannot end sessions
	}
	w.step("verify")
	_, err = f.Admin().Verify(w.ctx)
	w.must(err)
	_, err = f.Admin().VerifyParts(w.ctx)
	w.must(err)
	_, err = f.Admin().VerifyPartitions(w.ctx)
	w.must(err)

	if sequence {
		w.step("republish, unpublish and delete keys")
		_, err = f.Admin().UnknownKeys(w.ctx, l.key(1))
		w.must(err)
		own := func(do func(tx rowfeed.Tx) error) { w.Helper(); w.must(f.InOwnTx(w.ctx, do)) }
		own(func(tx rowfeed.Tx) error { return f.Republish(w.ctx, tx, l.key(1), l.key(2)) })
		own(func(tx rowfeed.Tx) error { return f.Unpublish(w.ctx, tx, l.key(5)) })
		own(func(tx rowfeed.Tx) error { return f.Delete(w.ctx, tx, l.key(6)) })
		_, err = f.Admin().CountWhere(w.ctx, "v > 0")
		w.must(err)
		_, err = f.Admin().RepublishWhere(w.ctx, "v > 0", 2, nil)
		w.must(err)
		w.publish(f)
		w.step("purge deletes")
		w.exec("UPDATE rowfeed_positions_kv SET published_at = 0 WHERE deleted = 1")
	} else if !blocking {
		w.step("purge entries, and back-fill rows")
		w.must(f.Admin().SetRetention(w.ctx, rowfeed.Retention{Count: 3}))
	}
	_, err = f.Admin().Purge(w.ctx)
	if !blocking {
		w.must(err)
	}
	if !sequence && !blocking {
		w.must(f.Admin().SetRetention(w.ctx, rowfeed.Retention{}))
		_, err = f.Admin().BackFill(w.ctx, nil)
		w.refused(err) // it does not go behind a purge
	}

	w.step("check")
	_, err = f.Admin().Check(w.ctx)
	w.must(err)
	w.step("repair")
	w.damage(l)
	if _, err = f.Admin().Repair(w.ctx); sequence {
		w.must(err)
		w.publish(f)
	}
	w.step("upgrade")
	w.damageSchema(f, l)
	_, err = f.Admin().Upgrade(w.ctx)
	w.must(err)
	if l.spec.Mode == "" {
		w.step("divide by another number of data shards")
		_, err = f.Admin().Reshard(w.ctx, 8, nil)
		w.must(err)
		w.publish(f)
	}
	w.step("adopt the database, and begin a new generation")
	_, err = f.Admin().AdoptDatabase(w.ctx)
	w.must(err)
	_, err = f.Admin().Bump(w.ctx)
	w.must(err)
	if w.family() != "sqlite" {
		w.grants(f)
	}
}

// grants gives a login its rights on the feed, and takes them away.
func (w *recording) grants(f *rowfeed.Feed) {
	w.step("grant and revoke")
	login := map[string]string{"postgres": "wire_" + w.db.Name, "mysql": "wire_" + w.db.Name + "@localhost"}[w.family()]
	spelled := map[string]string{"postgres": login, "mysql": strings.Replace(login, "@", "@'", 1) + "'"}[w.family()]
	user := map[string]string{"postgres": "ROLE ", "mysql": "USER "}[w.family()] + spelled
	w.exec("CREATE " + user)
	defer w.exec("DROP " + user)
	logins := rowfeed.Grants{Readers: []string{login}}
	if f.Capture() != feedtype.CaptureTrigger {
		logins.Writers = logins.Readers
	}
	w.must(f.Admin().Grant(w.ctx, logins))
	w.must(f.Admin().Revoke(w.ctx, logins))
}

// damage makes something that repair mends.
func (w *recording) damage(l layout) {
	switch {
	case l.spec.Mode == rowfeed.ModeOutbox:
		w.exec(l.row(90))
	case l.spec.Capture == feedtype.CaptureColumn:
		w.db.Exec(w.T, "UPDATE kv SET feed_sync_id = 3 WHERE id IN (1, 2)")
	case l.spec.Mode == "":
		w.db.Exec(w.T, "DELETE FROM rowfeed_positions_kv WHERE "+l.at(1))
	}
}

// damageSchema removes a trigger, where the feed has one.
func (w *recording) damageSchema(f *rowfeed.Feed, l layout) {
	if l.spec.Capture == feedtype.CaptureApp || l.spec.Capture == feedtype.CaptureColumn ||
		l.spec.Mode == rowfeed.ModeBlocking || l.name == "outbox" {
		return
	}
	names := w.dialect.TriggerNames(&dialect.Feed{Name: "kv", Names: dialect.Names{Prefix: "rowfeed_"}})
	drop := "DROP TRIGGER " + w.dialect.Quote(names[0])
	if w.family() == "postgres" {
		drop += " ON kv"
	}
	w.exec(drop)
}

// row is the statement that inserts a row.
func (l layout) row(id int) string {
	return "INSERT INTO kv VALUES (" + fmt.Sprintf(l.insert, id) + ")"
}

func (l layout) at(id int) string { return fmt.Sprintf(l.where, id) }

// shard is a part that has rows.
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
			u, err := f.Lock(w.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}})
			if err != nil {
				return err
			}
			at, err := u.At(1, 0)
			if err != nil {
				return err
			}
			insert := "INSERT INTO kv (id, v, u) VALUES (?, 1, ?)"
			if w.family() == "postgres" {
				insert = "INSERT INTO kv (id, v, u) VALUES ($1, 1, $2)"
			}
			w.silently(func() { _, err = tx.ExecContext(w.ctx, insert, id, at) })
			return errors.Join(err, u.Verify(w.ctx))
		})
	case l.spec.Mode == rowfeed.ModeOutbox && l.spec.Capture == "":
		w.inTx(func(tx *sql.Tx) error {
			var err error
			w.silently(func() { _, err = tx.ExecContext(w.ctx, l.row(id)) })
			return errors.Join(err, f.AppendOutbox(w.ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Shard: 1, Key: l.key(id)}))
		})
	default:
		w.exec(l.row(id))
	}
}

// inTx runs do in a transaction of the tapped pool.
func (w *recording) inTx(do func(tx *sql.Tx) error) {
	w.Helper()
	var tx *sql.Tx
	w.silently(func() {
		var err error
		tx, err = w.pool.BeginTx(w.ctx, nil)
		w.must(err)
	})
	if err := do(tx); err != nil {
		_ = tx.Rollback()
		w.Fatal(err)
	}
	w.must(tx.Commit())
}

// until runs something until it has called done.
func (w *recording) until(run func(ctx context.Context, done func()) error) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	w.must(run(ctx, sync.OnceFunc(cancel)))
}

// untilRepeated runs something until it sends only statements that were sent before.
func (w *recording) untilRepeated(run func(ctx context.Context) error) {
	w.Helper()
	w.until(func(ctx context.Context, done func()) error {
		w.repeats(done)
		defer w.repeats(nil)
		return run(ctx)
	})
}
