package watch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	// watchTimeout bounds one look: a database that does not answer is one that failed.
	lookTimeout = 10 * time.Second
	// maxWatchPause bounds the pause while looks fail.
	maxWatchPause = 5 * time.Second
)

// Standing is how far a feed is.
type Standing struct {
	Generation int64
	Head       feedtype.Position // the highest that may have been given
	// waiting says that records of an outbox wait to be given one, by whoever reads. Nobody
	// who has read to the end has seen it so.
	waiting bool
}

// watchKey is what has a standing: a feed, or a shard where each is a feed by itself.
type Key struct {
	Feed    string
	OfShard bool
	Shard   int
	Every   bool // all shards together, see everyShard
}

// Ahead tells whether s is a later standing of the feed than other.
func (s Standing) Ahead(other Standing) bool {
	return s.Generation > other.Generation || s.Generation == other.Generation && s.Head.Above(other.Head)
}

// Watcher lets any number of callers wait for any number of feeds of a DB at the price
// of one: while somebody waits it looks now and then, with one statement, how far every
// feed is; a publisher of this process tells it directly. Publishers with nothing to do wait
// here as well, for changes, at the price of the same statement; see watch_sleep.go.
//
// No wake-up is lost, because there are none to lose: who waits says how far the feed
// was when it was read, and is woken by whatever shows it elsewhere, be that known
// already or found by a look that begins later.
type Watcher struct {
	look   look
	pages  func() any    // makes crowd.pages
	asleep time.Duration // between looks while publishers sleep

	Mu       sync.Mutex
	known    map[Key]known
	Crowds   map[watched]*Crowd
	waiting  int // callers in crowds
	sleepers map[*sleeper]struct{}
	serving  map[string]int // publishers at work in this process, by feed
	running  bool           // a goroutine looks
	poke     chan struct{}  // the next look is due earlier, or nobody needs one any more
	paces    Pace           // of looks for those who wait
	outage   time.Duration  // the pause while looks fail; 0 while they do not
	due      time.Time      // the next look
	round    int64          // looks begun
	ended    int64          // looks whose result was taken in
	stirred  int64          // the last of them that found that something may have changed
	sure     int64          // the last one that succeeded; 0 after one that failed
}

// known is how far a feed was when it was last heard of.
type known struct {
	Standing
	round int64 // looks that had begun by then
}

// watched is what a caller waits for: that the feed is elsewhere.
type watched struct {
	Key  Key
	seen Standing
}

// Crowd are callers that wait for the same, and are woken together.
type Crowd struct {
	moved chan struct{} // closed when they are woken
	news  Standing      // what woke them, by then; none where the feed is gone
	At    time.Time     // when they were woken
	since int64         // looks begun when the first of them came
	Size  int
	// Pages are what those woken read: each has asked when it was woken, so that they
	// share every page whenever each of them gets to run. See watcher.pages.
	Pages any
}

// look finds out what has happened.
type look func(ctx context.Context, q Question) (answer, error)

// Question is what a look is for.
type Question struct {
	Waiting bool     // somebody waits for entries, of some feed
	Shards  []Key    // the shards for which somebody waits
	asleep  []string // feeds whose publishers sleep
}

// answer is what a look has found.
type answer struct {
	At map[Key]Standing // how far everything is, if somebody waits
	// changed are feeds for whose publishers something waits; stirred says that it may be any:
	// something was committed, and who sleeps is to ask himself.
	changed map[string]bool
	stirred bool
}

func New(waiting, asleep time.Duration, look look, pages func() any) *Watcher {
	return &Watcher{look: look, pages: pages, asleep: asleep, paces: Pace{Longest: waiting},
		poke:  make(chan struct{}, 1),
		known: make(map[Key]known), Crowds: make(map[watched]*Crowd), sleepers: make(map[*sleeper]struct{}),
		serving: make(map[string]int)}
}

// Verdict is how waiting ended.
type Verdict int

const (
	moved  Verdict = iota // the feed is, or may be, elsewhere
	Quiet                 // ctx ended, and a look during the wait found the feed where it was
	unsure                // ctx ended, and nothing is known of the feed
)

// Wait returns when the feed is no longer where it was seen, or when ctx ends. The
// crowd is that of the callers woken with this one; nil where it was not woken. The
// standing is what woke it. Who was
// woken by what is known and then read nothing newer (a pool may lead to servers that
// lag behind each other) comes back patient, and waits for other news.
func (w *Watcher) Wait(ctx context.Context, key Key, seen Standing, patient bool) (Verdict, *Crowd, Standing) {
	w.Mu.Lock()
	if now, ok := w.known[key]; ok && !patient && now.Ahead(seen) {
		w.Mu.Unlock()
		return moved, nil, now.Standing
	}
	what := watched{key, seen}
	c := w.Crowds[what]
	if c == nil {
		c = &Crowd{moved: make(chan struct{}), since: w.round, Pages: w.pages()}
		w.Crowds[what] = c
	}
	c.Size++
	w.waiting++
	joined := w.round
	w.wanted()
	w.Mu.Unlock()
	select {
	case <-c.moved:
		return moved, c, c.news
	case <-ctx.Done():
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if w.Crowds[what] == c { // else woken at the same time
		c.Size--
		w.waiting--
		if c.Size == 0 {
			delete(w.Crowds, what)
		}
		w.unwanted()
	}
	if w.sure > joined {
		return Quiet, nil, Standing{}
	}
	return unsure, nil, Standing{}
}

// wanted has the next look come in time, now that one more wants it; w.mu is held. Who comes
// does not bring it about by itself.
func (w *Watcher) wanted() {
	due := time.Now().Add(w.interval())
	switch {
	case !w.running:
		w.running, w.due = true, due
		go w.run()
	case due.Before(w.due):
		w.due = due
		w.poked()
	}
}

// unwanted lets looks end where nobody wants them any more; w.mu is held.
func (w *Watcher) unwanted() {
	if w.waiting == 0 && len(w.sleepers) == 0 {
		w.poked()
	}
}

func (w *Watcher) poked() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// interval is the pause between looks, for those who want one; w.mu is held.
func (w *Watcher) interval() time.Duration {
	interval := w.asleep
	if w.waiting > 0 {
		interval = w.paces.Pause(time.Now())
		if len(w.sleepers) > 0 {
			interval = min(interval, w.asleep)
		}
	}
	return max(interval, w.outage)
}

// run looks for as long as somebody wants it. The time of the next look does not depend on
// how late the one before was.
func (w *Watcher) run() {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	t := time.NewTimer(time.Until(w.due))
	defer t.Stop()
	for {
		w.Mu.Unlock()
		select {
		case <-t.C:
		case <-w.poke:
		}
		w.Mu.Lock()
		if w.waiting == 0 && len(w.sleepers) == 0 {
			w.running, w.outage = false, 0 // whoever comes is to find out anew
			return
		}
		if wait := time.Until(w.due); wait > 0 {
			t.Reset(wait)
			continue
		}
		w.round++
		round, q := w.round, w.question()
		w.Mu.Unlock()
		// Who waits may leave at any time; a look that has begun is worth its end.
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		a, err := w.look(ctx, q)
		cancel()
		w.Mu.Lock()
		w.ended = round
		if err != nil {
			w.sure, w.outage = 0, min(2*max(w.outage, w.paces.Longest), max(maxWatchPause, w.paces.Longest))
		} else {
			w.outage = 0
		}
		if a.At != nil {
			w.sure = round
			if w.found(round, a.At) {
				w.paces.Brought(1, time.Now())
			}
		}
		w.rouse(round, a, err)
		if w.due = w.due.Add(w.interval()); time.Until(w.due) < 0 {
			w.due = time.Now() // what was missed is not made up for
		}
		t.Reset(time.Until(w.due))
	}
}

// question is that of a look; w.mu is held.
func (w *Watcher) question() Question {
	q := Question{Waiting: w.waiting > 0, Shards: w.shards()}
	for s := range w.sleepers {
		q.asleep = append(q.asleep, s.feed)
	}
	return q
}

// shards are those that somebody waits for; w.mu is held.
func (w *Watcher) shards() []Key {
	waited := make(map[Key]bool)
	for what := range w.Crowds {
		if what.Key.OfShard {
			waited[what.Key] = true
		}
	}
	return slices.Collect(maps.Keys(waited))
}

// found takes the result of a look in, and tells whether it woke anybody whom no publisher of this
// process was about to wake.
func (w *Watcher) found(round int64, now map[Key]Standing) (news bool) {
	for key, old := range w.known {
		// What was told while the look was under way may be newer.
		if now, ok := now[key]; old.round < round || ok && now.Ahead(old.Standing) {
			delete(w.known, key)
		}
	}
	for key, at := range now {
		if _, newer := w.known[key]; !newer {
			w.known[key] = known{at, round}
		}
	}
	for what, c := range w.Crowds {
		at, ok := Of(now, what.Key)
		// Who came before the look began has seen something older than it: any difference
		// is news, also a feed that is gone or was set back.
		if c.since < round && (!ok || at != what.seen) || ok && at.Ahead(what.seen) {
			w.wake(what, c, at)
			news = news || w.serving[what.Key.Feed] == 0
		}
	}
	return news
}

// Tell is how a publisher of this process says what it has committed.
func (w *Watcher) Tell(key Key, at Standing) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if old, ok := w.known[key]; !ok || at.Ahead(old.Standing) {
		w.known[key] = known{at, w.round}
	}
	for what, c := range w.Crowds {
		if what.Key == key && at.Ahead(what.seen) || key.OfShard && what.Key == EveryShard(key.Feed) {
			w.wake(what, c, at)
		}
	}
}

// wake wakes a crowd; w.mu is held.
func (w *Watcher) wake(what watched, c *Crowd, at Standing) {
	c.news, c.At = at, time.Now()
	delete(w.Crowds, what)
	w.waiting -= c.Size
	close(c.moved)
	w.unwanted()
}

// At is how far a feed or shard is, as far as is known.
func (w *Watcher) At(key Key) (Standing, bool) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	now, ok := w.known[key]
	return now.Standing, ok
}

// ShardsKnown are the standings of all shards of a feed, and what stands for all of them: as
// the last look showed them, and whoever has told of one since. ok says that it looked at all.
func (w *Watcher) ShardsKnown(feed string) (shards map[int]string, whole Standing, ok bool) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if _, ok := w.known[EveryShard(feed)]; !ok {
		return nil, Standing{}, false
	}
	shards = make(map[int]string)
	all := make(map[Key]Standing)
	for key, at := range w.known {
		if key.Feed == feed && key.OfShard && !key.Every {
			shards[key.Shard], all[key] = at.String(), at.Standing
		}
	}
	whole, ok = Together(all, []Key{EveryShard(feed)})[EveryShard(feed)]
	return shards, whole, ok
}
