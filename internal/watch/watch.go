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
	// pollTimeout bounds a poll. A database that does not answer counts as failed.
	pollTimeout = 10 * time.Second
	// maxOutagePause is the maximum pause while polls fail, unless polls are rarer anyway.
	maxOutagePause = 5 * time.Second
)

// Watermark tells how far the positions of a feed, or of a shard with ULIDs, have been given.
type Watermark struct {
	Generation int64
	Head       feedtype.Position // the highest position that may have been given
	Term       feedtype.Term     // of Head, in a sequence feed
	// waiting means that outbox records wait for a reader to move them. It is never set in the watermark of a page, so
	// a watermark with waiting always differs from the one that a reader has seen.
	waiting bool
}

// Key is what has a watermark: a feed, a shard with ULIDs, or all of a feed's shards.
type Key struct {
	Feed    string
	OfShard bool
	Shard   int
	Every   bool // all shards together, see EveryShard
}

// Ahead reports whether s is, or may be, a later watermark than other. Terms have no order: a watermark of another term
// may be later even if its head is lower.
func (s Watermark) Ahead(other Watermark) bool {
	return s.Generation > other.Generation ||
		s.Generation == other.Generation && (s.Head.Above(other.Head) || s.Term != other.Term)
}

// Watcher wakes waiting readers and sleeping publishers of all feeds of a DB. It polls the database for all of them
// with one statement. Publishers of this process report their commits to it directly.
//
// A reader passes the watermark of its page. It is woken by any later watermark, whether the watcher knew it before or
// learns it while the reader waits. So no wake-up is lost between reading and waiting. See DESIGN.md.
type Watcher struct {
	poll      poll
	newPages  func() any    // makes Crowd.Pages
	sleepPoll time.Duration // the pause between polls for sleeping publishers

	mu         sync.Mutex
	known      map[Key]known
	crowds     map[awaited]*Crowd
	waiting    int // callers in crowds
	sleepers   map[*sleeper]struct{}
	serving    map[string]int // publishers at work in this process, by feed
	running    bool           // the goroutine that polls runs
	poke       chan struct{}  // the next poll is due earlier, or no longer needed
	pace       Pace           // of polls for waiting readers
	outage     time.Duration  // the pause while polls fail; 0 while they succeed
	due        time.Time      // of the next poll
	begun      int64          // the number of polls that have begun
	ended      int64          // the last poll whose result was handled
	lastChange int64          // the last poll that found that something may have changed
	lastRead   int64          // the last poll that read watermarks; 0 after a failed poll
}

// known is the last watermark that the watcher knows of a key.
type known struct {
	Watermark
	begun int64 // the number of polls that had begun when the watcher learned it
}

// awaited is what a crowd waits for: another watermark of a key than the one seen.
type awaited struct {
	Key  Key
	seen Watermark
}

// Crowd are callers that wait for the same change of a watermark, and are woken together.
type Crowd struct {
	moved chan struct{} // closed when they are woken
	news  Watermark     // the watermark that woke them; zero if the feed is gone
	At    time.Time     // when they were woken
	begun int64         // the number of polls that had begun when the first caller came
	Size  int
	// Pages is shared by the callers. Each of them asked when the crowd was woken, so they can share every page that
	// one of them reads, however late the others run.
	Pages any
}

// poll reads from the database what has changed.
type poll func(ctx context.Context, q Question) (answer, error)

// Question is what a poll has to find out.
type Question struct {
	Waiting bool     // readers wait, so watermarks are needed
	Shards  []Key    // the shards that readers wait for
	asleep  []string // the feeds whose publishers sleep
}

// answer is the result of a poll.
type answer struct {
	At map[Key]Watermark // the watermarks; nil if no reader waits
	// changed has the feeds with a change for their publishers. Committed means that something was committed anywhere,
	// so that every publisher has to look for changes itself.
	changed   map[string]bool
	committed bool
}

// New makes a Watcher. It polls at most every waiting for readers, and every asleep for sleeping publishers. Pages
// makes the Pages of a Crowd.
func New(waiting, asleep time.Duration, poll poll, pages func() any) *Watcher {
	return &Watcher{
		poll:      poll,
		newPages:  pages,
		sleepPoll: asleep,
		pace:      Pace{Longest: waiting},
		poke:      make(chan struct{}, 1),
		known:     make(map[Key]known),
		crowds:    make(map[awaited]*Crowd),
		sleepers:  make(map[*sleeper]struct{}),
		serving:   make(map[string]int),
	}
}

// Verdict is how waiting ended.
type Verdict int

const (
	changed   Verdict = iota // the watermark is, or may be, another one
	Quiet                    // ctx ended, and a poll during the wait found no other watermark
	uncertain                // ctx ended, and no poll has succeeded meanwhile
)

// Wait returns when the watermark is no longer the one seen, or when ctx ends. It returns the crowd of callers that
// were woken together, nil if this one was not woken, and the watermark that woke it. A pool may lead to servers that
// lag. A caller that was woken and then read nothing newer sets ignoreKnown, and so waits for other news.
func (w *Watcher) Wait(ctx context.Context, key Key, seen Watermark, ignoreKnown bool) (Verdict, *Crowd, Watermark) {
	w.mu.Lock()
	if now, ok := w.known[key]; ok && !ignoreKnown && now.Ahead(seen) {
		w.mu.Unlock()
		return changed, nil, now.Watermark
	}
	what := awaited{key, seen}
	c := w.crowds[what]
	if c == nil {
		c = &Crowd{moved: make(chan struct{}), begun: w.begun, Pages: w.newPages()}
		w.crowds[what] = c
	}
	c.Size++
	w.waiting++
	joined := w.begun
	w.schedule()
	w.mu.Unlock()
	select {
	case <-c.moved:
		return changed, c, c.news
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.crowds[what] == c { // otherwise it was woken at the same time
		c.Size--
		w.waiting--
		if c.Size == 0 {
			delete(w.crowds, what)
		}
		w.stopIfIdle()
	}
	if w.lastRead > joined {
		return Quiet, nil, Watermark{}
	}
	return uncertain, nil, Watermark{}
}

// schedule makes the next poll due in time for a caller that has just come. w.mu is held. The caller waits for a pause
// first: coming causes no poll at once.
func (w *Watcher) schedule() {
	due := time.Now().Add(w.interval())
	switch {
	case !w.running:
		w.running, w.due = true, due
		go w.run()
	case due.Before(w.due):
		w.due = due
		w.pokeLoop()
	}
}

// stopIfIdle ends polling if no caller is left. w.mu is held.
func (w *Watcher) stopIfIdle() {
	if w.waiting == 0 && len(w.sleepers) == 0 {
		w.pokeLoop()
	}
}

func (w *Watcher) pokeLoop() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// interval is the pause between polls for the present callers. w.mu is held.
func (w *Watcher) interval() time.Duration {
	interval := max(StandByPause, w.sleepPoll)
	if w.waiting > 0 {
		interval = w.pace.Pause(time.Now())
	}
	for s := range w.sleepers {
		interval = min(interval, s.poll)
	}
	return max(interval, w.outage)
}

// run polls until no caller is left. A late poll does not delay the next one.
func (w *Watcher) run() {
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
			w.running, w.outage = false, 0 // the next caller finds out whether polls still fail
			return
		}
		if wait := time.Until(w.due); wait > 0 {
			t.Reset(wait)
			continue
		}
		w.begun++
		n, q := w.begun, w.question()
		w.mu.Unlock()
		// Callers may leave at any time, but a poll that has begun completes.
		ctx, cancel := context.WithTimeout(context.Background(), pollTimeout)
		a, err := w.poll(ctx, q)
		cancel()
		w.mu.Lock()
		w.ended = n
		if err != nil {
			w.lastRead = 0
			w.outage = min(2*max(w.outage, w.pace.Longest), max(maxOutagePause, w.pace.Longest))
		} else {
			w.outage = 0
		}
		if a.At != nil {
			w.lastRead = n
			if w.learn(n, a.At) {
				w.pace.Brought(1, time.Now())
			}
		}
		w.wakePublishers(n, a, err)
		if w.due = w.due.Add(w.interval()); time.Until(w.due) < 0 {
			w.due = time.Now() // missed polls are not made up for
		}
		t.Reset(time.Until(w.due))
	}
}

// question is what the next poll has to find out. w.mu is held.
func (w *Watcher) question() Question {
	q := Question{Waiting: w.waiting > 0, Shards: w.shards()}
	for s := range w.sleepers {
		q.asleep = append(q.asleep, s.feed)
	}
	return q
}

// shards are the shards that readers wait for. w.mu is held.
func (w *Watcher) shards() []Key {
	waited := make(map[Key]bool)
	for what := range w.crowds {
		if what.Key.OfShard {
			waited[what.Key] = true
		}
	}
	return slices.Collect(maps.Keys(waited))
}

// learn handles the watermarks that poll n has read. News means that a crowd was woken which no publisher of this
// process was about to wake. w.mu is held.
func (w *Watcher) learn(n int64, now map[Key]Watermark) (news bool) {
	for key, old := range w.known {
		// A watermark that was reported during the poll may be newer.
		if now, ok := now[key]; old.begun < n || ok && now.Ahead(old.Watermark) {
			delete(w.known, key)
		}
	}
	for key, at := range now {
		if _, newer := w.known[key]; !newer {
			w.known[key] = known{at, n}
		}
	}
	for what, c := range w.crowds {
		at, ok := Of(now, what.Key)
		// A crowd that came before the poll began has seen an older watermark. Any difference is news, also a feed that
		// is gone or was set back.
		if c.begun < n && (!ok || at != what.seen) || ok && at.Ahead(what.seen) {
			w.wake(what, c, at)
			news = news || w.serving[what.Key.Feed] == 0
		}
	}
	return news
}

// Tell is how a publisher of this process reports a commit.
func (w *Watcher) Tell(key Key, at Watermark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, ok := w.known[key]; !ok || at.Ahead(old.Watermark) {
		w.known[key] = known{at, w.begun}
	}
	for what, c := range w.crowds {
		if what.Key == key && at.Ahead(what.seen) || key.OfShard && what.Key == EveryShard(key.Feed) {
			w.wake(what, c, at)
		}
	}
}

// wake wakes a crowd. w.mu is held.
func (w *Watcher) wake(what awaited, c *Crowd, at Watermark) {
	c.news, c.At = at, time.Now()
	delete(w.crowds, what)
	w.waiting -= c.Size
	close(c.moved)
	w.stopIfIdle()
}

// At is the last known watermark of a feed or shard.
func (w *Watcher) At(key Key) (Watermark, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, ok := w.known[key]
	return now.Watermark, ok
}

// ShardsKnown returns the last known watermarks of all shards of a feed, and their digest. It is not ok if no poll has
// read all shards.
func (w *Watcher) ShardsKnown(feed string) (shards map[int]string, whole Watermark, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.known[EveryShard(feed)]; !ok {
		return nil, Watermark{}, false
	}
	shards = make(map[int]string)
	all := make(map[Key]Watermark)
	for key, at := range w.known {
		if key.Feed == feed && key.OfShard && !key.Every {
			shards[key.Shard], all[key] = at.String(), at.Watermark
		}
	}
	whole, ok = addDigests(all, []Key{EveryShard(feed)})[EveryShard(feed)]
	return shards, whole, ok
}

// Waiting counts the waiting readers of each feed that has any.
func (w *Watcher) Waiting() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := make(map[string]int)
	for what, c := range w.crowds {
		n[what.Key.Feed] += c.Size
	}
	return n
}
