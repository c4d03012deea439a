package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

const (
	// tailPoll and tailIdle bound the pause between looks at a quiet feed.
	tailPoll = 10 * time.Millisecond
	tailIdle = 500 * time.Millisecond
	// tailRetry bounds the pause while the database or server is away.
	tailRetry = 10 * time.Second
)

type tailOptions struct {
	name  string
	after string
	limit int
	url   string
}

func newTail(a *app) *cobra.Command {
	o := &tailOptions{}
	cmd := &cobra.Command{
		Use:   "tail NAME",
		Short: "Follow a feed, as NDJSON",
		Long: `Follows a feed until it is interrupted: an entry a line, and after each page a line
{"cursor":…,"more":…,"base64":…}, from which --after goes on. It reads the database, or
with --url a server ("rowfeed serve"). When either goes away it says so on stderr and
tries again until it is back.`,
		Example: `  rowfeed tail kv                                 # everything, then what comes
  rowfeed tail kv --after now                     # only what comes
  rowfeed tail kv --url http://127.0.0.1:8080`,
		Args: takes(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&o.after, "after", "", `a `+"`cursor`"+`, "now", or "at:" with an RFC 3339 time (default: the beginning)`)
	cmd.Flags().IntVar(&o.limit, "limit", 1000, fmt.Sprintf("at most so many entries a page, 1 to %d", rowfeed.MaxLimit))
	cmd.Flags().StringVar(&o.url, "url", "", "read from the server at this `URL` instead of the database")
	return cmd
}

func (o *tailOptions) run(ctx context.Context, a *app) error {
	if o.limit < 1 || o.limit > rowfeed.MaxLimit {
		return badLimit(o.name, o.limit)
	}
	if o.url != "" {
		return o.follow(ctx, a, &feedhttp.Client{URL: o.url, Feed: o.name})
	}
	return a.withFeed(ctx, o.name, func(_ *session, f *rowfeed.Feed) error { return o.follow(ctx, a, f) })
}

// follow prints what the source brings until ctx ends. A source that fails at the
// first page is most likely the wrong one, and ends it; later it is waited for.
func (o *tailOptions) follow(ctx context.Context, a *app, source rowfeed.Source) error {
	cursor, started := rowfeed.Cursor(o.after), false
	idle, away, trouble := tailPoll, newAway(), ""
	for ctx.Err() == nil {
		page, err := source.Fetch(ctx, rowfeed.Request{After: cursor, Limit: o.limit})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (!started || !passes(err)):
			return err
		case err != nil:
			if text := a.plain(err); text != trouble {
				trouble = text
				fmt.Fprintf(a.stderr, "rowfeed: %s; trying again until it is back\n", text)
			}
			if !wait(ctx, a.stdout, away.NextBackOff()) {
				return nil
			}
			continue
		case trouble != "":
			fmt.Fprintln(a.stderr, "rowfeed: it is back")
			trouble = ""
		}
		away.Reset()
		if len(page.Entries) > 0 || !started || page.Cursor != cursor {
			if err := writePage(a.stdout, page); err != nil {
				return err
			}
		}
		started, cursor = true, page.Cursor
		if len(page.Entries) > 0 {
			idle = tailPoll
		}
		if page.More {
			continue
		}
		if !wait(ctx, a.stdout, idle) {
			return nil
		}
		idle = min(idle*3/2, tailIdle)
	}
	return nil
}

// passes tells whether an error may end by itself. Failed is whatever a database or
// its driver said that has no name of its own, on its way down or up: what was
// followed so far is worth another try.
func passes(err error) bool {
	return errors.Is(err, rowfeed.Unavailable) || errors.Is(err, rowfeed.Locked) || errors.Is(err, rowfeed.Failed)
}

func newAway() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, tailRetry
	return b
}

// wait pauses, and answers false when the following is over: ctx has ended, or
// nobody reads the output any more.
func wait(ctx context.Context, out io.Writer, d time.Duration) bool {
	if readerGone(out) {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
