package read

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/spf13/cobra"
)

const (
	// tailWait is how long a request waits for an entry: so long a database may be away
	// before whoever watches is told.
	tailWait = 5 * time.Second
	// tailIdle is the pause after an empty page that came at once all the same.
	tailIdle = 500 * time.Millisecond
	// tailSilence is after how long without an answer, beyond the wait that was asked for,
	// whoever watches is told.
	tailSilence = 3 * time.Second
	// tailRetry bounds the pause while the database or server is away.
	tailRetry = 10 * time.Second
)

type TailOptions struct {
	Name    string
	After   string
	Limit   int
	URL     string
	token   string // where it is: env:NAME or file:PATH
	part    shardFlags
	Silence time.Duration // 0: tailSilence; for tests
}

func newTail(a *cli.App) *cobra.Command {
	o := &TailOptions{}
	cmd := &cobra.Command{
		Use:   "tail NAME",
		Short: "Follow a feed, as NDJSON",
		Long: `Follows a feed until it is interrupted: an entry a line, and after each page a line
{"cursor":…,"more":…,"base64":…}, from which --after goes on. It reads the database, or
with --url a server ("rowfeed serve"). When either goes away later it says so on stderr
and tries again until it is back; one that is not there at the start ends it.

--shard I is the I-th data shard alone; --shard I --shard-count N the I-th of N parts,
which together are the whole feed. Of a feed with ULIDs each shard is a feed by itself,
any number (--shard=-5); while there is only one it need not be named.`,
		Example: `  rowfeed tail kv                                 # everything, then what comes
  rowfeed tail kv --after now                     # only what comes
  rowfeed tail kv --url http://127.0.0.1:8080
  rowfeed tail kv --url https://feeds.example.com --token env:ROWFEED_TOKEN
  rowfeed tail kv --shard 0 --shard-count 4       # a quarter of it`,
		Args: cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.run(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&o.After, "after", "",
		`a `+"`cursor`"+`, "now", or "at:" with an RFC 3339 time (default: the beginning)`)
	cmd.Flags().IntVar(&o.Limit, "limit", 1000,
		fmt.Sprintf("at most so many entries a page, 1 to %d", feedtype.MaxLimit))
	cmd.Flags().StringVar(&o.URL, "url", "", "read from the server at this `URL` instead of the database")
	cmd.Flags().StringVar(&o.token, "token", "", "send the server this `token`, which stands in env:NAME or file:PATH")
	o.part.add(cmd)
	return cmd
}

func (o *TailOptions) run(ctx context.Context, a *cli.App) error {
	if o.Limit < 1 || o.Limit > feedtype.MaxLimit {
		return badLimit(o.Name, o.Limit)
	}
	if o.URL != "" {
		token, err := a.SecretToken(o.token)
		if err != nil {
			return err
		}
		return o.Follow(ctx, a, &feedhttp.Client{URL: o.URL, Feed: o.Name, Token: token, Tracer: a.Tracer})
	}
	if o.token != "" {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "token",
			Cause: "--token is for a server, and none is named", Next: "name it with --url, or leave --token out"}
	}
	return a.WithFeed(ctx, o.Name, func(_ *cli.Session, f *rowfeed.Feed) error { return o.Follow(ctx, a, f) })
}

// follow prints what the source brings until ctx ends. A source that fails at the
// first page is most likely the wrong one, and ends it; later it is waited for.
func (o *TailOptions) Follow(ctx context.Context, a *cli.App, source rowfeed.Source) error {
	ctx, stop := whileRead(ctx, a.Stdout)
	defer stop()
	shards, err := o.part.shards(o.Name)
	if err != nil {
		return err
	}
	cursor, started := rowfeed.Cursor(o.After), false
	away, trouble := newAway(), ""
	for ctx.Err() == nil {
		req, asked := rowfeed.Request{After: cursor, Limit: o.Limit, Shards: shards}, time.Now()
		if started { // where it begins is told at once
			req.Wait = tailWait
		}
		page, err := o.ask(ctx, a, source, req)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (!started || !passes(err)):
			return err
		case err != nil:
			if text := a.ErrorText(err); text != trouble {
				trouble = text
				fmt.Fprintf(a.Stderr, "rowfeed: %s; trying again until it is back\n", text)
			}
			pause(ctx, away.NextBackOff())
			continue
		case trouble != "":
			fmt.Fprintln(a.Stderr, "rowfeed: it is back")
			trouble = ""
		}
		away.Reset()
		if len(page.Entries) > 0 || !started || page.Cursor != cursor {
			if err := writePage(a.Stdout, page); err != nil {
				return err
			}
		} else if !page.More && time.Since(asked) < req.Wait/2 {
			pause(ctx, tailIdle)
		}
		started, cursor = true, page.Cursor
	}
	return nil
}

// ask fetches, and says so when no answer comes. It goes on waiting: what ends that is
// the source's own bound.
func (o *TailOptions) ask(
	ctx context.Context, a *cli.App, source rowfeed.Source, req rowfeed.Request,
) (page rowfeed.Page, err error) {
	silence := o.Silence
	if silence == 0 {
		silence = tailSilence
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		page, err = source.Fetch(ctx, req)
	}()
	t := time.NewTimer(req.Wait + silence)
	defer t.Stop()
	select {
	case <-answered:
		return page, err
	case <-t.C:
	}
	where := "the database"
	if o.URL != "" {
		where = "the server"
	}
	fmt.Fprintf(a.Stderr, "rowfeed: feed %q: %s has not answered for %s; still waiting\n", o.Name, where,
		req.Wait+silence)
	<-answered
	return page, err
}

// passes tells whether an error may end by itself. Failed is whatever a database or
// its driver said that has no name of its own, on its way down or up: what was
// followed so far is worth another try.
func passes(err error) bool {
	for _, code := range []rowfeed.Code{
		rowfeed.Unavailable, rowfeed.Locked, rowfeed.Failed, rowfeed.DatabaseChanged, rowfeed.ReadOnly,
		rowfeed.Sharding, rowfeed.Filling,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

func newAway() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, tailRetry
	return b
}

// whileRead is a context that ends when nobody reads the output any more: with nothing
// to write there is no other way to learn of it.
func whileRead(ctx context.Context, out io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for !readerGone(out) && ctx.Err() == nil {
			pause(ctx, tailIdle)
		}
		cancel()
	}()
	return ctx, cancel
}

// pause waits for d or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
