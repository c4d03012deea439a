package rowfeed

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

const (
	// watchTimeout bounds one look: a database that does not answer is one that failed.
	watchTimeout = 10 * time.Second
	// maxWatchPause bounds the pause while looks fail.
	maxWatchPause = 5 * time.Second
)

// standing is how far a feed is.
type standing struct {
	generation int64
	head       feedtype.Position // the highest that may have been given
	// waiting says that records of an outbox wait to be given one, by whoever reads. Nobody
	// who has read to the end has seen it so.
	waiting bool
}

// watchKey is what has a standing: a feed, or a shard where each is a feed by itself.
type watchKey struct {
	feed    string
	ofShard bool
	shard   int
	every   bool // all shards together, see everyShard
}

// ahead tells whether s is a later standing of the feed than other.
func (s standing) ahead(other standing) bool {
	return s.generation > other.generation || s.generation == other.generation && s.head.Above(other.head)
}

// watcher lets any number of callers wait for any number of feeds of a DB at the price
// of one: while somebody waits it looks now and then, with one statement, how far every
// feed is; a publisher of this process tells it directly. Publishers with nothing to do wait
// here as well, for changes, at the price of the same statement; see watch_sleep.go.
//
// No wake-up is lost, because there are none to lose: who waits says how far the feed
// was when it was read, and is woken by whatever shows it elsewhere, be that known
// already or found by a look that begins later.
type watcher struct {
	look   look
	pages  func() any    // makes crowd.pages
	asleep time.Duration // between looks while publishers sleep

	mu       sync.Mutex
	known    map[watchKey]known
	crowds   map[watched]*crowd
	waiting  int // callers in crowds
	sleepers map[*sleeper]struct{}
	serving  map[string]int // publishers at work in this process, by feed
	running  bool           // a goroutine looks
	poke     chan struct{}  // the next look is due earlier, or nobody needs one any more
	paces    store.Pace     // of looks for those who wait
	outage   time.Duration  // the pause while looks fail; 0 while they do not
	due      time.Time      // the next look
	round    int64          // looks begun
	ended    int64          // looks whose result was taken in
	stirred  int64          // the last of them that found that something may have changed
	sure     int64          // the last one that succeeded; 0 after one that failed
}

// known is how far a feed was when it was last heard of.
type known struct {
	standing
	round int64 // looks that had begun by then
}

// watched is what a caller waits for: that the feed is elsewhere.
type watched struct {
	key  watchKey
	seen standing
}

// crowd are callers that wait for the same, and are woken together.
type crowd struct {
	moved chan struct{} // closed when they are woken
	news  standing      // what woke them, by then; none where the feed is gone
	at    time.Time     // when they were woken
	since int64         // looks begun when the first of them came
	size  int
	// pages are what those woken read: each has asked when it was woken, so that they
	// share every page whenever each of them gets to run. See watcher.pages.
	pages any
}

// look finds out what has happened.
type look func(ctx context.Context, q question) (answer, error)

// question is what a look is for.
type question struct {
	waiting bool       // somebody waits for entries, of some feed
	shards  []watchKey // the shards for which somebody waits
	asleep  []string   // feeds whose publishers sleep
}

// answer is what a look has found.
type answer struct {
	at map[watchKey]standing // how far everything is, if somebody waits
	// changed are feeds for whose publishers something waits; stirred says that it may be any:
	// something was committed, and who sleeps is to ask himself.
	changed map[string]bool
	stirred bool
}

func newWatcher(waiting, asleep time.Duration, look look, pages func() any) *watcher {
	return &watcher{look: look, pages: pages, asleep: asleep, paces: store.Pace{Longest: waiting}, poke: make(chan struct{}, 1),
		known: make(map[watchKey]known), crowds: make(map[watched]*crowd), sleepers: make(map[*sleeper]struct{}), serving: make(map[string]int)}
}

// verdict is how waiting ended.
type verdict int

const (
	moved  verdict = iota // the feed is, or may be, elsewhere
	quiet                 // ctx ended, and a look during the wait found the feed where it was
	unsure                // ctx ended, and nothing is known of the feed
)

// wait returns when the feed is no longer where it was seen, or when ctx ends. The
// crowd is that of the callers woken with this one; nil where it was not woken. The
// standing is what woke it. Who was
// woken by what is known and then read nothing newer (a pool may lead to servers that
// lag behind each other) comes back patient, and waits for other news.
func (w *watcher) wait(ctx context.Context, key watchKey, seen standing, patient bool) (verdict, *crowd, standing) {
	w.mu.Lock()
	if now, ok := w.known[key]; ok && !patient && now.ahead(seen) {
		w.mu.Unlock()
		return moved, nil, now.standing
	}
	what := watched{key, seen}
	c := w.crowds[what]
	if c == nil {
		c = &crowd{moved: make(chan struct{}), since: w.round, pages: w.pages()}
		w.crowds[what] = c
	}
	c.size++
	w.waiting++
	joined := w.round
	w.wanted()
	w.mu.Unlock()
	select {
	case <-c.moved:
		return moved, c, c.news
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.crowds[what] == c { // else woken at the same time
		c.size--
		w.waiting--
		if c.size == 0 {
			delete(w.crowds, what)
		}
		w.unwanted()
	}
	if w.sure > joined {
		return quiet, nil, standing{}
	}
	return unsure, nil, standing{}
}

// wanted has the next look come in time, now that one more wants it; w.mu is held. Who comes
// does not bring it about by itself.
func (w *watcher) wanted() {
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
func (w *watcher) unwanted() {
	if w.waiting == 0 && len(w.sleepers) == 0 {
		w.poked()
	}
}

func (w *watcher) poked() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// interval is the pause between looks, for those who want one; w.mu is held.
func (w *watcher) interval() time.Duration {
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
func (w *watcher) run() {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := time.NewTimer(time.Until(w.due))
	defer t.Stop()
	for {
		w.mu.Unlock()
		select {
		case <-t.C:
		case <-w.poke:
		}
		w.mu.Lock()
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
		w.mu.Unlock()
		// Who waits may leave at any time; a look that has begun is worth its end.
		ctx, cancel := context.WithTimeout(context.Background(), watchTimeout)
		a, err := w.look(ctx, q)
		cancel()
		w.mu.Lock()
		w.ended = round
		if err != nil {
			w.sure, w.outage = 0, min(2*max(w.outage, w.paces.Longest), max(maxWatchPause, w.paces.Longest))
		} else {
			w.outage = 0
		}
		if a.at != nil {
			w.sure = round
			if w.found(round, a.at) {
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
func (w *watcher) question() question {
	q := question{waiting: w.waiting > 0, shards: w.shards()}
	for s := range w.sleepers {
		q.asleep = append(q.asleep, s.feed)
	}
	return q
}

// shards are those that somebody waits for; w.mu is held.
func (w *watcher) shards() []watchKey {
	waited := make(map[watchKey]bool)
	for what := range w.crowds {
		if what.key.ofShard {
			waited[what.key] = true
		}
	}
	return slices.Collect(maps.Keys(waited))
}

// found takes the result of a look in, and tells whether it woke anybody whom no publisher of this
// process was about to wake.
func (w *watcher) found(round int64, now map[watchKey]standing) (news bool) {
	for key, old := range w.known {
		// What was told while the look was under way may be newer.
		if now, ok := now[key]; old.round < round || ok && now.ahead(old.standing) {
			delete(w.known, key)
		}
	}
	for key, at := range now {
		if _, newer := w.known[key]; !newer {
			w.known[key] = known{at, round}
		}
	}
	for what, c := range w.crowds {
		at, ok := standingOf(now, what.key)
		// Who came before the look began has seen something older than it: any difference
		// is news, also a feed that is gone or was set back.
		if c.since < round && (!ok || at != what.seen) || ok && at.ahead(what.seen) {
			w.wake(what, c, at)
			news = news || w.serving[what.key.feed] == 0
		}
	}
	return news
}

// tell is how a publisher of this process says what it has committed.
func (w *watcher) tell(key watchKey, at standing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, ok := w.known[key]; !ok || at.ahead(old.standing) {
		w.known[key] = known{at, w.round}
	}
	for what, c := range w.crowds {
		if what.key == key && at.ahead(what.seen) || key.ofShard && what.key == everyShard(key.feed) {
			w.wake(what, c, at)
		}
	}
}

// wake wakes a crowd; w.mu is held.
func (w *watcher) wake(what watched, c *crowd, at standing) {
	c.news, c.at = at, time.Now()
	delete(w.crowds, what)
	w.waiting -= c.size
	close(c.moved)
	w.unwanted()
}

// at is how far a feed or shard is, as far as is known.
func (w *watcher) at(key watchKey) (standing, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, ok := w.known[key]
	return now.standing, ok
}

// shardsKnown are the standings of all shards of a feed, and what stands for all of them: as
// the last look showed them, and whoever has told of one since. ok says that it looked at all.
func (w *watcher) shardsKnown(feed string) (shards map[int]string, whole standing, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.known[everyShard(feed)]; !ok {
		return nil, standing{}, false
	}
	shards = make(map[int]string)
	all := make(map[watchKey]standing)
	for key, at := range w.known {
		if key.feed == feed && key.ofShard && !key.every {
			shards[key.shard], all[key] = at.String(), at.standing
		}
	}
	whole, ok = together(all, []watchKey{everyShard(feed)})[everyShard(feed)]
	return shards, whole, ok
}
