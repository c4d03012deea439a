package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/spf13/cobra"
)

// discoverEvery is the default of PublishOptions.Discover.
const discoverEvery = 2 * time.Second

// PublishOptions are the options of the command publish.
type PublishOptions struct {
	names []string
	once  bool
	// Discover is the interval at which a publisher of all feeds looks for new feeds.
	Discover time.Duration
	metrics  metricsFlag
}

func newPublish(a *cli.App) *cobra.Command {
	o := &PublishOptions{Discover: discoverEvery}
	cmd := &cobra.Command{
		Use:   "publish [NAME…]",
		Short: "Give positions to changes",
		Long: `Publishes the named feeds, or all feeds, until it is interrupted: gives every change a
position. Without names it also publishes feeds that are added later. It survives an
outage of the database. Several publishers at once are safe. "rowfeed serve" has a
publisher of its own. With mode outbox, the publisher gives records their ULIDs before
readers ask for them, and every minute purges what --retain does not keep. With mode
blocking, writers give the positions, and this command has nothing to do.

For each feed, the lease "publish:NAME" makes sure that one publisher works and the
others stand by. After the publisher ends, the next one starts within about 5 seconds;
after it was killed, 10 seconds later than that. "rowfeed status" shows which process
publishes. With --without-lease this publisher works regardless of others. That is safe,
with one exception: a MariaDB server whose tables are also read without rowfeed needs
one publisher at a time.

With --once it publishes the waiting changes and ends. It needs no lease, purges
nothing, and prints a line for each feed: kv: 3 keys published, head 3. (For a feed with
ULIDs and several shards, the line has the number of shards.)

With --metrics, or the key metrics in rowfeed.yaml, it serves Prometheus metrics at
/metrics to every client that can reach the address; with --once it does not.`,
		Example: `  rowfeed publish
  rowfeed publish --once kv
  rowfeed publish --metrics :9464`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.Run(cmd.Context(), a)
		},
	}
	cmd.Flags().BoolVar(&o.once, "once", false, "publish the waiting changes, and end")
	leaseFlag(a, cmd)
	o.metrics.add(cmd)
	return cmd
}

func leaseFlag(a *cli.App, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.WithoutLease, "without-lease", false, "publish even while other publishers work")
}

func (o *PublishOptions) Run(ctx context.Context, a *cli.App) error {
	if !o.once {
		count(a)
	}
	ctx, stop := orHangup(ctx)
	defer stop()
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	feeds, err := o.feeds(ctx, s)
	if err != nil {
		return err
	}
	if o.once {
		return o.publishOnce(ctx, a, feeds)
	}
	if len(feeds) == 0 {
		s.Log.Info("there are no feeds yet; `rowfeed feed add NAME --table T` makes one")
	}
	stopMetrics, err := o.metrics.serve(ctx, a, s)
	if err != nil {
		return err
	}
	defer stopMetrics()
	return server.RunPublishers(ctx, server.Publishing{DB: s.DB, Feeds: o.names, Log: s.Log, DiscoverEvery: o.Discover})
}

// feeds returns the feeds that the command line names, or all feeds.
func (o *PublishOptions) feeds(ctx context.Context, s *cli.Session) ([]*rowfeed.Feed, error) {
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

func (o *PublishOptions) publishOnce(ctx context.Context, a *cli.App, feeds []*rowfeed.Feed) error {
	if len(feeds) == 0 {
		return a.PrintLine("there are no feeds; `rowfeed feed add NAME --table T` makes one")
	}
	var failed []error
	for _, f := range feeds {
		n, err := f.Publish(ctx)
		if err != nil { // the other feeds are still published
			failed = append(failed, err)
			continue
		}
		info, err := f.Info(ctx)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		published := cli.Plural(int64(n), "key")
		if err := a.PrintLine("%s: %s published, %s", f.Name(), published, headText(info)); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// headText returns the head of a feed, or the number of shards if each shard has a head of its own.
func headText(info *rowfeed.Info) string {
	switch {
	case info.MoreShardIDs:
		return "more than " + cli.Plural(int64(len(info.ShardIDs)), "shard")
	case len(info.ShardIDs) > 1:
		return cli.Plural(int64(len(info.ShardIDs)), "shard")
	case info.Head == rowfeed.Beginning:
		return "head 0"
	}
	return "head " + string(info.Head)
}
