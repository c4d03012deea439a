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
	// tailWait is how long a request waits for an entry.
	tailWait = 5 * time.Second
	// tailIdle is the pause after an empty page that came without waiting.
	tailIdle = 500 * time.Millisecond
	// tailSilence is how long after tailWait a missing answer is reported on stderr.
	tailSilence = 3 * time.Second
	// tailRetry is the maximum pause while the database or server is unavailable.
	tailRetry = 10 * time.Second
)

type TailOptions struct {
	Name    string
	After   string
	Limit   int
	URL     string
	token   string // env:NAME or file:PATH
	part    shardFlags
	Silence time.Duration // 0 means tailSilence; only tests set it
}

func newTail(a *cli.App) *cobra.Command {
	o := &TailOptions{}
	cmd := &cobra.Command{
		Use:   "tail NAME",
		Short: "Follow a feed, as NDJSON",
		Long: `Follows a feed until it is interrupted. It prints one entry a line, and after each
page a line {"cursor":…,"more":…,"base64":…}, from which --after continues. It reads
the database, or with --url a server ("rowfeed serve"). If the database or server
becomes unavailable later, tail says so on stderr and tries again until it is back. If
it is unavailable at the start, tail fails.

--shard I reads only the data shard I. --shard I --shard-count N reads part I of N
parts, which together are the whole feed. Each shard of a feed with ULIDs has an order
of its own, and any number (--shard=-5). It need not be named while it is the only
one.`,
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
		fmt.Sprintf("at most this many entries per page, 1 to %d", feedtype.MaxLimit))
	cmd.Flags().StringVar(&o.URL, "url", "", "read from the server at this `URL` instead of the database")
	cmd.Flags().StringVar(&o.token, "token", "", "send the server the `token` in env:NAME or file:PATH")
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
			Cause: "--token is for a server, but there is no --url",
			Next:  "name the server with --url, or leave --token out"}
	}
	return a.WithFeed(ctx, o.Name, func(_ *cli.Session, f *rowfeed.Feed) error { return o.Follow(ctx, a, f) })
}

// Follow prints the pages of a source until ctx ends. An error at the first page ends it, since the source is probably
// the wrong one. Later Follow waits until the source is available again.
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
		if started { // the first page is printed at once
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

// ask fetches a page. If no answer comes it says so on stderr, and still waits: the source has a timeout of its own.
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

// passes reports whether trying again can help. Failed is among these errors: databases that stop or start return
// errors for which there is no code.
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

// whileRead returns a context that ends when the reader of the output has closed its pipe. Without entries there is
// nothing to write, so that no write would fail.
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
