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
	// maxPause is the longest pause before a publisher that failed is started again.
	maxPause = 30 * time.Second
	// probation is how long a publisher must run again to count as running.
	probation = 10 * time.Second
)

// Publishing says what RunPublishers does. Only DB is needed.
type Publishing struct {
	DB *rowfeed.DB
	// Feeds are the names of those to publish. Default: all, also those added later.
	Feeds []string
	// Log is told what operators should know. Default: nobody.
	Log *slog.Logger
	// DiscoverEvery is as in Config.
	DiscoverEvery time.Duration
}

// RunPublishers publishes until ctx ends, and then answers nil. Unlike Run it answers
// an error when a publisher gives up, or a feed that was named is gone.
func RunPublishers(ctx context.Context, what Publishing) error {
	cfg := Config{DB: what.DB, Log: what.Log, DiscoverEvery: what.DiscoverEvery, Publish: true}
	p := newPublishers(cfg.withDefaults())
	p.names, p.gaveUp = what.Feeds, make(chan error, 1)
	return p.run(ctx)
}

// publishers runs one publisher for every feed of a DB, or for those named, and keeps
// that so while feeds come and go.
type publishers struct {
	db      *rowfeed.DB
	names   []string
	log     *slog.Logger
	every   time.Duration
	enabled bool
	gaveUp  chan error // nil: who gives up is started again

	mu      sync.Mutex
	running map[string]*publisher
}

// publisher is one feed's. It runs until stop is called or the feed is gone.
type publisher struct {
	feed *rowfeed.Feed
	stop context.CancelFunc
	done chan struct{} // closed at the end

	mu          sync.Mutex
	failed      error // why it last gave up
	failedUntil time.Time
}

func newPublishers(cfg Config) *publishers {
	return &publishers{db: cfg.DB, log: cfg.Log, every: cfg.DiscoverEvery, enabled: cfg.Publish,
		running: make(map[string]*publisher)}
}

// list finds the feeds to publish.
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

// run looks for feeds until ctx ends, and answers when every publisher has ended.
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
		case err.Error() != complaint: // said once, not every second
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

// adjust stops the publishers of feeds that are no longer there, waits for their end,
// and starts those that are missing. Of one feed there is never more than one.
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

// forget takes those out that have ended, or whose feed is not among the given. After
// a drop and an add in this process a feed of the same name is another object, whose
// Wake must reach its publisher.
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

// run publishes, and again after a growing pause when the publisher gives up (the
// server may forget commits, say): what it gave up for can be put right.
func (p *publisher) run(ctx context.Context, all *publishers) {
	defer p.stop()
	log := all.log
	for pause := all.every; ; pause = min(2*pause, maxPause) {
		err := p.feed.RunPublisher(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if errors.Is(err, rowfeed.UnknownFeed) && len(all.names) == 0 {
			log.InfoContext(ctx, "the feed is gone, its publisher ends", "feed", p.feed.Name())
			return
		}
		if all.gaveUp != nil {
			select {
			case all.gaveUp <- err:
			default: // another one was first
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

// fail notes why the publisher does not run, until it has run again for a while: what
// stops it may show at its next change only.
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

// problems is what the publisher of a feed knows to be wrong.
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
