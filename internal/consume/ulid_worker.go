package consume

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// lookPoll is how often a worker that has much to do looks for shards that have something new.
const lookPoll = 100 * time.Millisecond

// A feed each shard of which is one by itself is read with a cursor for each of them. A worker,
// which is one job of the consumer's, has those whose number falls to it, and reads them in
// turn, a page of each at a time.

// JobOf tells which of n workers has a shard.
func JobOf(shard, n int) int {
	h := fnv.New32a()
	h.Write(strconv.AppendInt(nil, int64(shard), 10))
	return int(h.Sum32() % uint32(n))
}

// worker has the shards of one job, in one goroutine.
type worker struct {
	*assignment // without a shard, what all of them have
	in          *instance
	retry       retry
	job         int
	shards      map[int]*workerShard

	watermarks *feedtype.Standings // as they were looked at last
	lookedAt   time.Time
	vain       int       // looks in a row that brought news, but nothing to do
	checkedAt  time.Time // when it was looked last whether somebody has moved a cursor
	changes    int64     // of the consumer's row, as it was then
	begun      bool
}

// workerShard is one shard of a worker's.
type workerShard struct {
	run *shardRun
	// due: there is, or may be, something to do.
	due bool
	// vain counts the pages in a row that did not come to where the source says the shard is.
	vain int
	// made: Deliver was asked for.
	made bool
	// last is the cursor's row as it was known last.
	last *CursorRow
	// readAt is when it was read last.
	readAt time.Time
	// failure, if once, is why it stands still.
	failure error
}

// runWorker works on the shards of a job: up to their heads, if once, or until the end of until.
func (in *instance) runWorker(ctx, until context.Context, job int, epoch int64) error {
	w := in.newWorker(until, job, epoch)
	for until.Err() == nil {
		done, err := w.round(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case done:
			return w.outcome()
		}
	}
	return ctx.Err()
}

func (in *instance) newWorker(until context.Context, job int, epoch int64) *worker {
	a := in.of(until, -1, epoch)
	return &worker{assignment: a, in: in, retry: retry{assignment: a}, job: job, shards: map[int]*workerShard{}, changes: unread}
}

// outcome, if once, is the error of the shards that stand still.
func (w *worker) outcome() (first error) {
	more := 0
	for _, shard := range slices.Sorted(maps.Keys(w.shards)) {
		switch err := w.shards[shard].failure; {
		case first == nil:
			first = err
		case err != nil:
			more++
		}
	}
	return andMore(first, more)
}

// round looks what there is to do, and does a page of every shard that has something. done
// says, if once, that every shard is at the head of the moment at which it began.
func (w *worker) round(ctx context.Context) (done bool, err error) {
	if err := w.poll(ctx); err != nil {
		return false, w.survive(ctx, err)
	}
	w.retry.outages = 0
	for _, shard := range slices.Sorted(maps.Keys(w.shards)) {
		if w.until.Err() != nil {
			return false, nil
		}
		if t := w.shards[shard]; t.ready() {
			if err := w.takeTurn(ctx, t); err != nil {
				return false, err
			}
		}
	}
	next, due := w.next()
	switch {
	case !due && w.once:
		return true, nil
	case w.once || time.Until(next) <= 0:
		return false, w.retry.pause(ctx, max(time.Until(next), 0))
	}
	if w.vain > 0 { // others' shards move, or servers do not agree
		if err := w.retry.pause(ctx, min(store.Jitter(min(firstIdle<<min(w.vain, 20), maxIdle)), time.Until(next))); err != nil {
			return false, err
		}
	}
	return false, w.survive(ctx, w.meetShards(ctx, max(time.Until(next), 0)))
}

// survive is that of a shard. Who is to hand over survives everything.
func (w *worker) survive(ctx context.Context, err error) error {
	if err != nil && w.until.Err() != nil {
		return ctx.Err()
	}
	return w.retry.survive(ctx, err)
}

// next is when there is something to do next, as far as is known; due tells whether a shard
// has something, now or then.
func (w *worker) next() (next time.Time, due bool) {
	next = w.checkedAt.Add(cursorPoll)
	for _, t := range w.shards {
		if t.due {
			due = true
			if t.run.retry.notBefore.Before(next) {
				next = t.run.retry.notBefore
			}
		}
	}
	return next, due
}

// poll learns what there is to do.
func (w *worker) poll(ctx context.Context) error {
	if time.Since(w.checkedAt) >= cursorPoll {
		if err := w.checkCursors(ctx); err != nil {
			return err
		}
		if w.begun && !w.once {
			w.scheduleOldest()
		}
	}
	if w.begun && (w.once || time.Since(w.lookedAt) < lookPoll) {
		return nil
	}
	if err := w.meetShards(ctx, 0); err != nil {
		return err
	}
	w.begun = true
	return nil
}

// meetShards takes in how far the shards are, and waits for so long at most until one moves: those
// that it has and that are elsewhere have their turn, those that it meets for the first time get
// a cursor.
func (w *worker) meetShards(ctx context.Context, wait time.Duration) error {
	since := ""
	if w.watermarks != nil {
		since = w.watermarks.Digest
	}
	now, err := w.fetchWatermarks(ctx, since, wait)
	if err != nil {
		return err
	}
	w.lookedAt = time.Now()
	if now.Shards == nil && now.Digest == since && since != "" {
		w.vain = 0
		return nil
	}
	w.vain++
	var was map[int]string
	if w.watermarks != nil {
		was = w.watermarks.Shards
	}
	var unknown []int
	for shard, at := range now.Shards {
		if JobOf(shard, w.count) != w.job {
			continue
		}
		t := w.shards[shard]
		switch {
		case t == nil:
			unknown = append(unknown, shard)
		case (at != t.run.watermark || at == "") && !t.due && !t.run.parked:
			t.due, w.vain = true, 0
		case at != was[shard] && t.vain == 0:
			w.vain = 0 // its own shards move, and it is there, or at it
		}
	}
	if len(unknown) > 0 {
		w.vain = 0
		slices.Sort(unknown)
		if err := w.newShards(ctx, unknown); err != nil {
			return err
		}
		if err := w.checkCursors(ctx); err != nil {
			return err
		}
	}
	w.watermarks = now
	return nil
}

// fetchWatermarks asks the source how far the shards are. One that only lists them says nothing of any:
// each is then read again and again.
func (w *worker) fetchWatermarks(ctx context.Context, since string, wait time.Duration) (*feedtype.Standings, error) {
	if source, can := w.c.Source.(feedtype.ShardSource); can {
		return source.Standings(w.until, since, wait)
	}
	if err := w.retry.pause(ctx, wait); err != nil {
		return nil, err
	}
	info, err := w.c.Source.Info(ctx)
	if err != nil {
		return nil, err
	}
	return w.c.watermarks(ctx, info)
}

// scheduleOldest lets one shard have its turn that nothing is known of, the one that was read the
// longest ago: a row whose ULID was taken earlier, and used late, moves no standing.
func (w *worker) scheduleOldest() {
	var oldest *workerShard
	for _, shard := range slices.Sorted(maps.Keys(w.shards)) {
		if t := w.shards[shard]; !t.due && !t.run.parked && (oldest == nil || t.readAt.Before(oldest.readAt)) {
			oldest = t
		}
	}
	if oldest != nil {
		oldest.due = true
	}
}

// takeTurn does one thing for a shard: releases a dead letter, or handles a page.
func (w *worker) takeTurn(ctx context.Context, t *workerShard) error {
	one := t.run
	one.retry.notBefore, t.readAt, t.failure = time.Time{}, time.Now(), nil
	if err := w.prepare(t); err != nil {
		return err
	}
	before := one.cursor.version
	done, err := one.step(ctx)
	if one.cursor.row != nil {
		t.last = one.cursor.row
	}
	switch {
	case err != nil && ctx.Err() == nil && (stopsOneShard(err) || w.once && delaysOneShard(err)):
		return w.rest(ctx, t, err)
	case err != nil:
		return err
	case one.parked:
		t.due = false
	case done:
		w.afterPage(t, one.cursor.version != before)
	}
	return nil
}

// settle tells whether a shard that came to its end has something to do yet. Where the source
// says that it is elsewhere than the page has shown, it has; or what the source has said is older than
// a page that brought something, and is asked for anew; or it is another server, which
// lags: then that is asked for ever less often.
func (w *worker) afterPage(t *workerShard, moved bool) {
	at := ""
	if w.watermarks != nil {
		at = w.watermarks.Shards[t.run.shard]
	}
	elsewhere := at != "" && at != t.run.watermark && !w.once
	t.due = elsewhere && !moved
	switch {
	case moved:
		t.vain = 0
		if elsewhere {
			w.watermarks, w.lookedAt = &feedtype.Standings{Shards: w.watermarks.Shards}, time.Time{} // since "": all of them
		}
	case t.due:
		t.vain++
		t.run.retry.notBefore = time.Now().Add(store.Jitter(min(firstIdle<<min(t.vain, 20), maxVain)))
	}
}

// andMore is an error for several shards.
func andMore(first error, more int) error {
	if more > 0 {
		return fmt.Errorf("%w (and %d more of its shards stand still)", first, more)
	}
	return first
}

// ready tells whether it is its turn.
func (t *workerShard) ready() bool { return t.due && !time.Now().Before(t.run.retry.notBefore) }

// maxVain is the longest pause between two pages of a shard that do not show what the source
// says is there.
const maxVain = 5 * time.Second

// prepare asks for the shard's Deliver, once.
func (w *worker) prepare(t *workerShard) error {
	if t.made || w.c.DeliverShard == nil {
		return nil
	}
	err := w.in.deliverTo(t.run)
	t.made = err == nil
	return err
}

// rest lets a shard stand still by itself, and says why: it is tried again after the longest
// backoff, or when its cursor was written.
func (w *worker) rest(ctx context.Context, t *workerShard, why error) error {
	one := t.run
	t.failure = why
	if w.once {
		t.due = false
		return nil
	}
	one.cursor.row = nil
	one.trouble(why)
	if _, err := one.cursor.noteFailure(ctx, why); err != nil && ctx.Err() == nil {
		one.trouble(err)
	}
	one.retry.notBefore = time.Now().Add(store.Jitter(one.c.Retry.MaxBackoff))
	return ctx.Err()
}
