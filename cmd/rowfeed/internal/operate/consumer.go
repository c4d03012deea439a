package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

// consumerFlags are the flags for the cursors of a consumer.
type consumerFlags struct {
	consumer, feed string
	shard          cli.ShardNumber
	oneShard       func() bool // whether --shard was given; otherwise the command is about all shards
}

func (o *consumerFlags) bind(cmd *cobra.Command) {
	o.bindFeed(cmd)
	cmd.Flags().Var(&o.shard, "shard", "only this `shard`")
	o.oneShard = func() bool { return cmd.Flags().Changed("shard") }
}

func (o *consumerFlags) bindFeed(cmd *cobra.Command) {
	cmd.Flags().Var((*selector)(&o.feed), "feed", "only its cursors of this `feed`")
}

// selector is the text of a flag that selects some of what the command would otherwise act on.
type selector string

func (s *selector) String() string { return string(*s) }
func (s *selector) Type() string   { return "string" }

// Set refuses an empty text, which would select everything.
func (s *selector) Set(text string) error {
	if text == "" {
		return errors.New("it is empty, perhaps because a variable is not set. " +
			"To select everything, leave the flag out")
	}
	*s = selector(text)
	return nil
}

func (o *consumerFlags) id() rowfeed.ConsumerID {
	id := rowfeed.ConsumerID{Consumer: o.consumer, Feed: o.feed}
	if o.oneShard != nil && o.oneShard() {
		shard := int(o.shard)
		id.Shard = &shard
	}
	return id
}

// known returns an error if the flags name a consumer, feed or shard of which there is no cursor.
func (o *consumerFlags) known(ctx context.Context, s *cli.Session) error {
	id := o.id()
	if id == (rowfeed.ConsumerID{}) {
		return nil
	}
	return s.KnownConsumer(ctx, s.Admin().RequireConsumer(ctx, id), o.consumer)
}

type consumerOptions struct {
	consumerFlags
	to      string
	consent cli.Consent
}

func newConsumer(a *cli.App) *cobra.Command {
	cmd := cli.NewGroup("consumer", "List, pause, resume, reset and seek consumers",
		`Lists consumers and changes their cursors. A consumer keeps its cursor in the database
that it writes to, in a row that it updates in the transaction of its effects. So a
running consumer notices a change by these commands at its next write, without a
restart, and rolls back the batch that it is handling. A consumer of several shards
has a cursor for each: the commands are about all of them, unless --shard names one.
The number of shards is set by the application, when it starts (ShardCount), or for a
relay by "rowfeed relay --shard-count".`, `  rowfeed consumer list
  rowfeed consumer pause billing
  rowfeed consumer pause billing --feed orders --shard 3
  rowfeed consumer seek billing --feed orders --to at:2026-01-31T12:00:00Z
  rowfeed consumer resume billing`)
	cmd.AddCommand(newConsumerList(a), newConsumerSeek(a),
		consumerVerb(a, "pause", "Pause a consumer",
			`Pauses a consumer, wherever it runs. It rolls back the batch that it is handling. For
a feed with ULIDs new shards are paused, too, unless --shard names one.`,
			"paused", (*admin.Admin).PauseConsumer),
		consumerVerb(a, "resume", "Resume a paused consumer",
			`Lets a paused consumer continue from its cursor. If it was paused without --shard, new
shards stay paused until it is resumed without --shard.`, "resumed", (*admin.Admin).ResumeConsumer),
		consumerVerb(a, "reset", "Set a consumer back to the beginning",
			`Sets a consumer back to the beginning. It receives the whole feed again, with the
present values of every row, but no deletes of rows that are gone. So the consumer has
to remove rows that the new pass does not deliver. Dead letters stay; if a key with a
dead letter comes again, it joins that dead letter.

On a terminal it says how much is sent again, and asks, unless --yes is given. --dry-run
only says so.`, "set back to the beginning", (*admin.Admin).ResetConsumer),
		consumerVerb(a, "drop", "Remove a consumer",
			`Removes a consumer: its cursors, its dead letters and its processed ids. If the
consumer is still running, it starts again at the beginning: stop it first.`, "dropped", (*admin.Admin).DropConsumer),
		newConsumerPurge(a))
	return cmd
}

func newConsumerList(a *cli.App) *cobra.Command {
	o := &consumerOptions{}
	cmd := &cobra.Command{
		Use:   "list [CONSUMER]",
		Short: "List consumers, and how far they are behind",
		Long: `Lists consumers with their cursors, and how far each is behind its feed: in positions,
and the age of the oldest entry not yet consumed. "?" means that the feed is not in
this database, or is of another generation. The state is "paused", "failing", "behind",
"ok" or "unknown". For a shard that fails, a line below the table has the error, since
when, the number of attempts, the next one, and where a relay delivers.

Every shard counts the positions of the whole feed. A shard without entries moves its
cursor to the head every 10 seconds. For a feed with ULIDs each shard is listed by its
own number, and "behind" is the age of its oldest row not yet consumed.

With --json: [{"consumer":"billing","feed":"orders","shard":0,"shard_count":1,
"cursor":"3","generation":1,"epoch":0,"paused":false,"dead_letters":0,
"moved_at":"2026-01-31T12:00:00Z","failure":{"error":"…","since":"…","attempts":3,
"next_try":"…"},"target":"https://example.com/hook","lease":{…},"behind":0,
"behind_seconds":0}].

"lease" is that of the process that works on the relay or shard, as in "lease list";
it, "failure", "behind" and "behind_seconds" may be null. "failure" has no "next_try" if
the process has ended with the error. "target" is where a relay delivers. For a feed
with ULIDs "shard" is the shard's own number, "worker" says which of
"shard_count" workers (from 0) has it, "behind" is null, and "new_paused":true says
that new shards will be paused. "behind_seconds" is computed for at most 1,000 shards
of a feed that are behind.`,
		Example: "  rowfeed consumer list\n  rowfeed consumer list billing --json",
		Args:    cli.Args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.consumer = args[0]
			}
			return o.list(cmd.Context(), a)
		},
	}
	o.bind(cmd)
	a.AddOutput(cmd, true)
	return cmd
}

// consumerVerb returns a command that changes the cursors of a consumer, and has no other flags.
func consumerVerb(
	a *cli.App, verb, short, long, done string,
	change func(*admin.Admin, context.Context, rowfeed.ConsumerID) (int64, error),
) *cobra.Command {
	o := &consumerOptions{}
	cmd := &cobra.Command{
		Use:     verb + " CONSUMER",
		Short:   short,
		Long:    long,
		Example: fmt.Sprintf("  rowfeed consumer %s billing\n  rowfeed consumer %s billing --feed orders", verb, verb),
		Args:    cli.Args(1, 1, "the CONSUMER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.consumer = args[0]
			changing := func(s *cli.Session) (int64, error) { return change(s.Admin(), cmd.Context(), o.id()) }
			if verb == "reset" {
				return o.move(cmd.Context(), a, "set it back to the beginning", rowfeed.Beginning, changing, done)
			}
			return o.change(cmd.Context(), a, changing, done)
		},
	}
	if verb == "reset" {
		o.consent.Bind(cmd)
	}
	if verb == "drop" { // all shards of the consumer
		o.bindFeed(cmd)
	} else {
		o.bind(cmd)
	}
	return cmd
}

func newConsumerPurge(a *cli.App) *cobra.Command {
	o := &consumerOptions{}
	cmd := &cobra.Command{
		Use:   "purge CONSUMER --feed F",
		Short: "Remove processed ids that cannot be delivered again",
		Long: `Removes the ids that a receiver has marked as processed, up to the cursor of the
consumer of that name in this database, or up to --to. Entries up to there are not
delivered again. If the cursor of the deliverer is in another database, give --to.`,
		Example: "  rowfeed consumer purge billing --feed orders\n  rowfeed consumer purge billing --feed orders " +
			"--to 1200",
		Args: cli.Args(1, 1, "the CONSUMER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.consumer = args[0]
			if o.feed == "" {
				return cli.WrongUse(cmd, "give --feed")
			}
			return o.purge(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&o.feed, "feed", "", "the `feed`")
	cmd.Flags().StringVar(&o.to, "to", "", "up to this `cursor` (default: the consumer's)")
	return cmd
}

func (o *consumerOptions) purge(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	n, err := s.Admin().PurgeProcessed(ctx, o.consumer, o.feed, rowfeed.Cursor(o.to))
	if err != nil {
		return s.KnownConsumer(ctx, err, o.consumer)
	}
	return a.PrintLine("%s of %s: %s deleted", o.consumer, o.feed, cli.Plural(n, "processed id"))
}

// move changes cursors after a user of a terminal has agreed. doing names the change.
func (o *consumerOptions) move(ctx context.Context, a *cli.App, doing string, to rowfeed.Cursor,
	change func(*cli.Session) (int64, error), done string) error {
	if a.Ask == nil && !o.consent.DryRun {
		return o.change(ctx, a, change, done)
	}
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	effect, err := o.effect(ctx, s, to)
	if err != nil {
		return err
	}
	if o.consent.DryRun {
		return a.PrintLine("%s: %s Nothing was changed.", o.object(), effect)
	}
	if err := a.Confirm(ctx, o.consent, o.object(), doing, effect); err != nil {
		return err
	}
	return o.change(ctx, a, change, done)
}

// effect says what a consumer misses or receives again if its cursors are set to another cursor.
func (o *consumerOptions) effect(ctx context.Context, s *cli.Session, to rowfeed.Cursor) (string, error) {
	feeds := []string{o.feed}
	if o.feed == "" {
		if err := o.known(ctx, s); err != nil {
			return "", err
		}
		all, err := s.Admin().Consumers(ctx, o.id())
		if err != nil {
			return "", err
		}
		feeds = nil
		for _, c := range all {
			if !slices.Contains(feeds, c.Feed) {
				feeds = append(feeds, c.Feed)
			}
		}
	}
	sum := admin.CursorMove{Counted: true}
	for _, feed := range feeds {
		id := o.id()
		id.Feed = feed
		m, err := s.Admin().PreviewSeek(ctx, id, to)
		if err != nil {
			return "", s.KnownConsumer(ctx, err, o.consumer)
		}
		sum.Skipped, sum.Repeated = sum.Skipped+m.Skipped, sum.Repeated+m.Repeated
		sum.Counted = sum.Counted && m.Counted
	}
	return sum.Effect(), nil
}

// object names the consumer, its feed and its shard as far as they are selected.
func (o *consumerOptions) object() string {
	name := o.consumer
	if o.feed != "" {
		name += " of " + o.feed
	}
	if o.id().Shard != nil {
		name += fmt.Sprintf(", shard %d", o.shard)
	}
	return name
}

func (o *consumerOptions) change(
	ctx context.Context, a *cli.App, change func(*cli.Session) (int64, error), done string,
) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := change(s); err != nil {
		return s.KnownConsumer(ctx, err, o.consumer)
	}
	return a.PrintLine("%s: %s", o.object(), done)
}

func (o *consumerOptions) list(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := s.Admin().Consumers(ctx, o.id())
	if err != nil {
		return err
	}
	switch {
	case a.JSON:
		return a.PrintJSON(all)
	case len(all) == 0 && o.id() == (rowfeed.ConsumerID{}):
		return a.PrintLine("there are no consumers; a consumer creates its cursor when it starts, see rowfeed.Consumer")
	case len(all) == 0:
		return a.PrintLine("no cursor matches; `rowfeed consumer list` shows all consumers")
	}
	var rows []table.Row
	notes := newShardsPaused(all)
	if slices.ContainsFunc(all, func(c admin.ConsumerStatus) bool { return behind(c, "") == unknown }) {
		notes = append(notes, `behind ?: the feed is not in this database, or the cursor cannot be compared with it: `+
			`it is of another generation, ahead of the feed, or a time to begin at`)
	}
	for _, c := range all {
		if c.Failure != nil {
			who := c.Consumer + " of " + c.Feed
			if c.ShardCount > 1 || c.Worker != nil {
				who += fmt.Sprintf(", shard %d", c.Shard)
			}
			notes = append(notes, who+": "+fails(a, *c.Failure, c.Target))
		}
		cursor := string(c.Cursor)
		if cursor == "" {
			cursor = `""`
		}
		holder := "-"
		if c.Lease != nil {
			holder = process(c.Lease.Owner)
		}
		shard := fmt.Sprintf("%d of %d", c.Shard, c.ShardCount)
		if c.Worker != nil {
			shard = fmt.Sprint(c.Shard)
		}
		rows = append(rows, table.Row{c.Consumer, c.Feed, shard, cursor, behind(c, ", %s"), c.State(), c.DeadLetters,
			c.MovedAt.Format(time.RFC3339), holder})
	}
	if err := a.PrintTable(table.Row{"consumer", "feed", "shard", cli.Wide("cursor"), "behind", "state",
		"dead letters", cli.Wide("moved"), cli.Wide("holder")}, rows); err != nil {
		return err
	}
	for _, line := range notes {
		if err := a.PrintLine("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// newShardsPaused returns a line for each consumer whose new shards will be paused.
func newShardsPaused(all []admin.ConsumerStatus) (lines []string) {
	for i, c := range all {
		if c.NewPaused && (i == 0 || all[i-1].Consumer != c.Consumer || all[i-1].Feed != c.Feed) {
			lines = append(lines, fmt.Sprintf("%s of %s: new shards will be paused, too; "+
				"`rowfeed consumer resume %s --feed %s` ends this", c.Consumer, c.Feed, c.Consumer, c.Feed))
		}
	}
	return lines
}

// fails says in one line what keeps failing, and since when.
func fails(a *cli.App, f rowfeed.Failure, target string) string {
	line := "failing since " + f.Since.Format(time.RFC3339) + ", " + cli.Plural(int64(f.Attempts), "attempt")
	switch {
	case f.NextTry.IsZero():
		line += ", and not tried again: the process has ended"
	case time.Until(f.NextTry) > 0:
		line += ", next at " + f.NextTry.Format(time.RFC3339)
	}
	if target != "" {
		line += ", to " + target
	}
	return line + ": " + a.ErrorText(errors.New(strings.Join(strings.Fields(f.Error), " ")))
}

const unknown = "?"

// behind says how far a consumer is behind its feed: in positions, and in time in the format since.
func behind(c admin.ConsumerStatus, since string) string {
	switch {
	case c.Behind == nil && c.BehindSeconds == nil:
		return unknown
	case c.Behind == nil && *c.BehindSeconds == 0: // a feed with ULIDs, whose positions are not counted
		return "0"
	case c.Behind == nil:
		return age(*c.BehindSeconds)
	case *c.Behind == 0 || c.BehindSeconds == nil:
		return fmt.Sprint(*c.Behind)
	}
	return fmt.Sprint(*c.Behind) + fmt.Sprintf(since, age(*c.BehindSeconds))
}
