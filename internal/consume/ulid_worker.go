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

// lookPoll is how often a busy worker asks which shards have something new.
const lookPoll = 100 * time.Millisecond

// A feed each shard of which is one by itself is read with a cursor for each of them. A worker,
// which is one job of the consumer's, has those whose number falls to it, and reads them in
// turn, a page of each at a time.

// JobOf returns which of n workers reads a shard.
func JobOf(shard, n int) int {
	h := fnv.New32a()
	h.Write(strconv.AppendInt(nil, int64(shard), 10))
	return int(h.Sum32() % uint32(n))
}

// worker reads its shards of a ULID feed in turns, one page at a time, in one goroutine. Each shard has a cursor of
// its own.
type worker struct {
	*assignment // with a negative shard
	in          *instance
	retry       retry
	job         int
	shards      map[int]*workerShard

	watermarks *feedtype.Standings // as last read
	lookedAt   time.Time
	vain       int       // polls in a row that brought news, but nothing to do
	checkedAt  time.Time // when checkCursors ran last
	changes    int64     // version of the consumer's row at that time
	begun      bool

	wide      operation   // what has failed for all shards since its last success
	wideShard int         // the shard with whose cursor that failure is stored
	wideState cursorState // its attempts, apart from those of the shard
}

// operation is work of a worker for all of its shards. Several can be joined with |.
type operation int

const (
	checking operation = 1 << iota // checkCursors
	meeting                        // meetShards
)

// workerShard is one shard of a worker.
type workerShard struct {
	run *shardRun
	// due means that there may be something to do.
	due bool
	// vain counts the pages in a row that ended below the watermark.
	vain int
	// made means that DeliverShard was called.
	made bool
	// last is the last known row of the cursor.
	last *CursorRow
	// readAt is the time of the last turn.
	readAt time.Time
	// failure is why the shard cannot continue (RunOnce).
	failure error
}

// runWorker reads the shards of a worker: up to their heads with RunOnce, or until until ends.
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
	return &worker{assignment: a, in: in, retry: retry{assignment: a}, job: job, shards: map[int]*workerShard{},
		changes: unread}
}

// outcome returns the error of the shards that could not continue, after RunOnce.
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

// round gives a turn to every shard that has something to do. With RunOnce, done reports that every shard has reached
// the head it had at the start.
func (w *worker) round(ctx context.Context) (done bool, err error) {
	if err := w.poll(ctx); err != nil {
		return false, w.survive(ctx, err)
	}
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
	if w.vain > 0 { // shards of other workers move, or replicas differ
		if err := w.retry.pause(ctx, min(store.Jitter(min(firstIdle<<min(w.vain, 20), maxIdle)),
			time.Until(next))); err != nil {
			return false, err
		}
	}
	return false, w.survive(ctx, w.outcomeOf(ctx, meeting, w.meetShards(ctx, max(time.Until(next), 0))))
}

// outcomeOf notes the outcome of an operation, and returns its error. A success ends the failure of this operation
// only: other operations, or the shard with whose cursor the failure is stored, may still fail.
func (w *worker) outcomeOf(ctx context.Context, op operation, err error) error {
	if err != nil {
		w.wide |= op
		return err
	}
	if w.wide == op {
		w.retry.outages = 0
		if t := w.shards[w.wideShard]; t != nil && w.retry.cursor != nil {
			own := &t.run.cursor
			w.wideState.version = own.version
			cleared := own.attempts > 0 || own.failure // the shard's failure has replaced it
			if err := w.wideState.recovered(ctx, cleared); err != nil {
				return err
			}
		}
		w.retry.cursor, w.wideState = nil, cursorState{}
	}
	w.wide &^= op
	return nil
}

// survive is retry.survive. A worker that is to hand over ignores errors. The failure is stored with the first shard
// that has none of its own.
func (w *worker) survive(ctx context.Context, err error) error {
	if err != nil && w.until.Err() != nil {
		return ctx.Err()
	}
	if t := w.shards[w.wideShard]; err != nil && (w.retry.cursor == nil || t == nil || t.run.cursor.attempts > 0) {
		w.retry.cursor = nil
		for _, shard := range slices.Sorted(maps.Keys(w.shards)) {
			if own := &w.shards[shard].run.cursor; own.attempts == 0 && !own.failure {
				w.wideShard = shard
				w.wideState = cursorState{assignment: own.assignment, attempts: w.wideState.attempts}
				w.retry.cursor = &w.wideState
				break
			}
		}
	}
	return w.retry.survive(ctx, err)
}

// next returns when the worker has to act next. due reports whether a shard has something to do, now or then.
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

// poll learns which shards have something to do.
func (w *worker) poll(ctx context.Context) error {
	if time.Since(w.checkedAt) >= cursorPoll {
		if err := w.outcomeOf(ctx, checking, w.checkCursors(ctx)); err != nil {
			return err
		}
		if w.begun && !w.once {
			w.scheduleOldest()
		}
	}
	if w.begun && (w.once || time.Since(w.lookedAt) < lookPoll) {
		return nil
	}
	if err := w.outcomeOf(ctx, meeting, w.meetShards(ctx, 0)); err != nil {
		return err
	}
	w.begun = true
	return nil
}

// meetShards reads the watermarks, and waits until one moves, at most for wait. Its shards that are not at their
// watermark become due. New shards get a cursor.
func (w *worker) meetShards(ctx context.Context, wait time.Duration) error {
	since := ""
	if w.watermarks != nil {
		since = w.watermarks.Digest
	}
	now, err := w.fetchWatermarks(ctx, since, wait)
	if err != nil {
		return err
	}
	if now.Shards == nil && now.Digest == since && since != "" {
		w.vain, w.lookedAt = 0, time.Now()
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
			w.vain = 0 // the shards of this worker move, and it keeps up
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
	w.watermarks, w.lookedAt = now, time.Now()
	return nil
}

// fetchWatermarks asks the source for the watermarks. A source without watermarks only lists its shards: each is then
// read again and again.
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

// scheduleOldest makes the shard due that was read the longest ago. A row whose ULID was generated earlier and
// committed late does not move the watermark.
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

// takeTurn does one step for a shard.
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
		one.retry.ended(ctx, err)
		return err
	case one.parked:
		t.due = false
	case done:
		w.afterPage(t, one.cursor.version != before)
	}
	return nil
}

// afterPage decides whether a shard at its end has something left to do. If the watermark is elsewhere and the page
// brought entries, the watermark may be older than the page: it is read again. If the page brought none, a replica may
// lag: the shard is read again, at growing intervals.
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
			// an empty Digest asks for all shards
			w.watermarks, w.lookedAt = &feedtype.Standings{Shards: w.watermarks.Shards}, time.Time{}
		}
	case t.due:
		t.vain++
		t.run.retry.notBefore = time.Now().Add(store.Jitter(min(firstIdle<<min(t.vain, 20), maxVain)))
	}
}

// andMore adds to an error how many more shards have failed.
func andMore(first error, more int) error {
	if more > 0 {
		return fmt.Errorf("%w (and %d more of its shards are stopped)", first, more)
	}
	return first
}

// ready reports whether the shard may have its turn now.
func (t *workerShard) ready() bool { return t.due && !time.Now().Before(t.run.retry.notBefore) }

// maxVain is the longest pause between two pages of a shard that lag behind its watermark.
const maxVain = 5 * time.Second

// prepare asks for the Deliver of the shard, once.
func (w *worker) prepare(t *workerShard) error {
	if t.made || w.c.DeliverShard == nil {
		return nil
	}
	err := w.in.deliverTo(t.run)
	t.made = err == nil
	return err
}

// rest lets one shard pause, and stores why. It is tried again after the longest backoff, or when its cursor was
// written.
func (w *worker) rest(ctx context.Context, t *workerShard, why error) error {
	one := t.run
	t.failure = why
	if w.once {
		one.retry.ended(ctx, why)
		t.due = false
		return nil
	}
	one.cursor.row = nil
	one.trouble(why)
	pause := store.Jitter(one.c.Retry.MaxBackoff)
	one.cursor.failed(ctx, why, pause, true)
	one.retry.notBefore = time.Now().Add(pause)
	return ctx.Err()
}
