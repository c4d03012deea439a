package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rowfeed/rowfeed"
)

// discoverEvery is the default of publishOptions.discover.
const discoverEvery = 2 * time.Second

type publishOptions struct {
	names []string
	once  bool
	// discover is how often a publisher of all feeds looks for new ones.
	discover time.Duration
}

func newPublish(a *app) *cobra.Command {
	o := &publishOptions{discover: discoverEvery}
	cmd := &cobra.Command{
		Use:   "publish [NAME…]",
		Short: "Give positions to what was written",
		Long: `Gives positions to changes, until it is interrupted: of the named feeds, or of all of
them, also those added meanwhile. It survives a database that goes away. Several
publishers at once are safe. "rowfeed serve" has a publisher of its own.

With --once it publishes what is waiting and ends, with a line for each feed:
kv: 3 keys published, head 3.`,
		Example: `  rowfeed publish
  rowfeed publish --once kv`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.run(cmd.Context(), a)
		},
	}
	cmd.Flags().BoolVar(&o.once, "once", false, "publish what is waiting, and end")
	return cmd
}

func (o *publishOptions) run(ctx context.Context, a *app) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.done()
	feeds, err := o.feeds(ctx, s)
	if err != nil {
		return err
	}
	if o.once {
		return o.publishOnce(ctx, a, feeds)
	}
	return (&publishers{session: s, app: a, names: o.names, discover: o.discover}).run(ctx, feeds)
}

// feeds are the named ones, or all.
func (o *publishOptions) feeds(ctx context.Context, s *session) ([]*rowfeed.Feed, error) {
	if len(o.names) == 0 {
		return s.Feeds(ctx)
	}
	var feeds []*rowfeed.Feed
	for _, name := range o.names {
		f, err := s.Feed(ctx, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(feeds, f) {
			feeds = append(feeds, f)
		}
	}
	return feeds, nil
}

func (o *publishOptions) publishOnce(ctx context.Context, a *app, feeds []*rowfeed.Feed) error {
	if len(feeds) == 0 {
		return a.say("there are no feeds; `rowfeed feed add NAME --table T` makes one")
	}
	for _, f := range feeds {
		n, err := f.Publish(ctx)
		if err != nil {
			return err
		}
		page, err := f.Fetch(ctx, rowfeed.Request{After: rowfeed.Now, Limit: 1})
		if err != nil {
			return err
		}
		head := page.Cursor
		if head == rowfeed.Beginning {
			head = "0"
		}
		if err := a.say("%s: %s published, head %s", f.Name(), plural(int64(n), "key"), head); err != nil {
			return err
		}
	}
	return nil
}

// publishers runs one publisher for each feed.
type publishers struct {
	*session
	app      *app
	names    []string // empty: every feed there is
	discover time.Duration

	group   sync.WaitGroup
	running map[string]bool
	ended   chan publisherEnd
}

type publisherEnd struct {
	feed string
	err  error
}

// run publishes until ctx ends (and answers nil) or until going on makes no sense.
func (p *publishers) run(ctx context.Context, feeds []*rowfeed.Feed) error {
	ctx, cancel := context.WithCancel(ctx)
	p.running, p.ended = map[string]bool{}, make(chan publisherEnd)
	defer p.group.Wait()
	defer cancel()
	if len(feeds) == 0 {
		p.log.Info("there are no feeds yet; `rowfeed feed add NAME --table T` makes one")
	}
	p.start(ctx, feeds)
	tick := time.NewTicker(p.discover)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case end := <-p.ended:
			delete(p.running, end.feed)
			if ctx.Err() != nil {
				return nil
			}
			if len(p.names) > 0 || !errors.Is(end.err, rowfeed.UnknownFeed) {
				return end.err
			}
			p.log.Info("the feed was dropped", "feed", end.feed)
		case <-tick.C:
			if len(p.names) > 0 {
				continue
			}
			found, err := p.Feeds(ctx)
			if err != nil && ctx.Err() == nil {
				p.log.Warn("looking for new feeds failed", "error", p.app.plain(err))
			}
			p.start(ctx, found)
		}
	}
}

func (p *publishers) start(ctx context.Context, feeds []*rowfeed.Feed) {
	for _, f := range feeds {
		if p.running[f.Name()] {
			continue
		}
		p.running[f.Name()] = true
		p.log.Info("publishing", "feed", f.Name(), "table", f.Source().String())
		p.group.Go(func() {
			err := f.RunPublisher(ctx)
			select {
			case p.ended <- publisherEnd{f.Name(), err}:
			case <-ctx.Done():
			}
		})
	}
}
