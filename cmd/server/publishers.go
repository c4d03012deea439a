package server

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

const (
	// maxPause is the maximum pause before a publisher that failed is started again.
	maxPause = 30 * time.Second
	// probation is how long a restarted publisher must run until its failure is forgotten.
	probation = 10 * time.Second
)

// Publishing holds the settings of RunPublishers. Only DB is required.
type Publishing struct {
	DB *rowfeed.DB
	// Feeds are the names of the feeds to publish. Default: all feeds, including those added later.
	Feeds []string
	// Log gets messages for operators. Default: none.
	Log *slog.Logger
	// DiscoverEvery is the same as Config.DiscoverEvery.
	DiscoverEvery time.Duration
}

// RunPublishers publishes until ctx ends, and then returns nil. Unlike Run it returns an error if a publisher gives
// up, or if a feed in Feeds no longer exists.
func RunPublishers(ctx context.Context, what Publishing) error {
	cfg := Config{DB: what.DB, Log: what.Log, DiscoverEvery: what.DiscoverEvery, Publish: true}
	p := newPublishers(cfg.withDefaults())
	p.names, p.gaveUp = what.Feeds, make(chan error, 1)
	return p.run(ctx)
}

// publishers runs one publisher for every feed of a DB, or for the named feeds, and adapts when feeds are added and
// dropped.
type publishers struct {
	db      *rowfeed.DB
	names   []string
	log     *slog.Logger
	every   time.Duration
	enabled bool
	gaveUp  chan error // nil: a publisher that gives up is started again

	mu      sync.Mutex
	running map[string]*publisher
}

// publisher is the publisher of one feed. It runs until stop is called or the feed no longer exists.
type publisher struct {
	feed *rowfeed.Feed
	stop context.CancelFunc
	done chan struct{} // closed at the end

	mu          sync.Mutex
	failed      error // the last error with which it gave up
	failedUntil time.Time
}

func newPublishers(cfg Config) *publishers {
	return &publishers{db: cfg.DB, log: cfg.Log, every: cfg.DiscoverEvery, enabled: cfg.Publish,
		running: make(map[string]*publisher)}
}

// list returns the feeds to publish.
func (p *publishers) list(ctx context.Context) ([]*rowfeed.Feed, error) {
	if len(p.names) == 0 {
		return p.db.Feeds(ctx)
	}
	var feeds []*rowfeed.Feed
	for _, name := range p.names {
		f, err := p.db.Feed(ctx, name)
		if err != nil {
			return nil, err
		}
		feeds = append(feeds, f)
	}
	return feeds, nil
}

// run polls for feeds until ctx ends, and returns when every publisher has ended.
func (p *publishers) run(ctx context.Context) error {
	if !p.enabled {
		return nil
	}
	defer p.adjust(ctx, nil)
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	complaint := ""
	for {
		feeds, err := p.list(ctx)
		switch {
		case ctx.Err() != nil:
		case p.gaveUp != nil && errors.Is(err, rowfeed.UnknownFeed):
			return err
		case err == nil:
			p.adjust(ctx, feeds)
			if complaint != "" {
				p.log.InfoContext(ctx, "feeds can be listed again")
			}
			complaint = ""
		case err.Error() != complaint: // logged once, not every second
			complaint = err.Error()
			p.log.ErrorContext(ctx, "feeds cannot be listed; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-p.gaveUp:
			return err
		case <-tick.C:
		}
	}
}

// adjust stops the publishers of feeds that no longer exist, waits for their end, and starts the missing ones. A feed
// never has more than one publisher.
func (p *publishers) adjust(ctx context.Context, feeds []*rowfeed.Feed) {
	for _, ending := range p.forget(feeds) {
		ending.stop()
		<-ending.done
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range feeds {
		if p.running[f.Name()] != nil {
			continue
		}
		own, stop := context.WithCancel(ctx)
		started := &publisher{feed: f, stop: stop, done: make(chan struct{})}
		p.running[f.Name()] = started
		p.log.InfoContext(ctx, "publishing", "feed", f.Name())
		go func() {
			defer close(started.done)
			started.run(own, p)
		}()
	}
}

// forget removes the publishers that have ended, or whose feed is not among feeds. If a feed was dropped and added
// again in this process, the new feed is another object, and its Wake must reach its publisher.
func (p *publishers) forget(feeds []*rowfeed.Feed) (ending []*publisher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, running := range p.running {
		if running.ended() || !slices.Contains(feeds, running.feed) {
			ending = append(ending, running)
			delete(p.running, name)
		}
	}
	return ending
}

// run publishes. If the publisher gives up, run starts it again after a growing pause, because the reason may pass:
// for example, an operator may change the server's durability setting.
func (p *publisher) run(ctx context.Context, all *publishers) {
	defer p.stop()
	log := all.log
	for pause := all.every; ; pause = min(2*pause, maxPause) {
		err := p.feed.RunPublisher(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if errors.Is(err, rowfeed.UnknownFeed) && len(all.names) == 0 {
			log.InfoContext(ctx, "the feed was dropped, so its publisher ends", "feed", p.feed.Name())
			return
		}
		if all.gaveUp != nil {
			select {
			case all.gaveUp <- err:
			default: // another publisher gave up first
			}
			return
		}
		wait := pause/2 + rand.N(pause/2+1)
		p.fail(err, wait)
		log.ErrorContext(ctx, "publisher stopped; it will be started again", "feed", p.feed.Name(), "error", err,
			"pause", wait)
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// fail stores why the publisher does not run, until it has run again for a while: the reason may only show again at
// its next change.
func (p *publisher) fail(err error, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed, p.failedUntil = err, time.Now().Add(wait+probation)
}

func (p *publisher) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// problems returns what the publisher of a feed knows to be wrong.
func (p *publishers) problems(name string) []string {
	p.mu.Lock()
	running := p.running[name]
	p.mu.Unlock()
	if running == nil {
		return nil
	}
	all := slices.Clone(running.feed.Problems())
	running.mu.Lock()
	defer running.mu.Unlock()
	if running.failed != nil && time.Now().Before(running.failedUntil) {
		all = append(all, "its publisher stopped: "+feedhttp.ProblemOf(running.failed, name).String())
	}
	return all
}
