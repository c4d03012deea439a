package operate

import (
	"cmp"
	"context"
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

type statusOptions struct {
	name string // empty: all feeds
}

func newStatus(a *cli.App) *cobra.Command {
	o := &statusOptions{}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the state of feeds, and what delays them",
		Long: `Shows for each feed the head, the changes waiting and the age of the oldest, and rows
that vanished without a delete ("?" if counting took too long). It also shows the term
and since when the feed is in it: a new term follows a restore, a failover or another
publisher. It shows which process publishes (it holds the lease "publish:NAME") and
since when, problems, open transactions that may hold back changes, and how far
consumers are behind.

For a feed with ULIDs it shows the head of each shard, which transaction has the shard
and since when, and which transactions wait for it; it does not count vanished rows
("-"), since readers of such a feed receive no deletes. Such a feed has no term.

With --json: an array of
{"name":"kv","mode":"sequence","state":"active","capture":"trigger","table":"kv",
"generation":1,"head":3,"published_at":"2026-01-31T12:00:00Z","term":"9k3f2c7adq",
"term_since":"…","changes_waiting":0,"oldest_seconds":0,"tombstones_below":0,
"vanished":0,"publisher":{"name":"publish:kv","state":"held","owner":"host/pid/…",
"epoch":2,"since":"…","expires_in_seconds":8.5,"renewals":7},"failure":null,
"shards":[],"holders_told":"","blockers":[{"session":"…","user":"…","host":"…",
"age_seconds":1.5,"statement":"…","scope":"…"}],"blockers_unseen":{"cause":"…",
"next":"…"},"problems":[],"consumers":[…]}; with NAME just that object.

The first term of a feed has no term_since.
published_at, vanished, publisher, failure and age_seconds may be null. "failure" is
what the publisher keeps failing with: {"error":"…","since":"…","attempts":3,
"next_try":"…"}. blockers_unseen is missing if all sessions that hold changes back can
be seen. consumers are as in "consumer list". At most 1,000,000 changes are counted.

For a feed with ULIDs "shards" are [{"shard":5,"head":"01J…","head_at":"…",
"holder":{"session":"42","user":"app","host":"…","application":"…","since":"…",
"age_seconds":61.5,"state":"idle in transaction","state_seconds":60.1,
"statement":"…"},"waiting":[…]}]: the first 1,000, and all that have a holder.

head is "" and head_at and holder are null if there is none. What the database does
not show is "" or null. "holders_told" says which holders the database shows: "all",
"waited-for" (only holders of shards that another transaction waits for: MariaDB) or
"none" (SQLite, or missing rights).`,
		Example: `  rowfeed status
  rowfeed status --watch
  rowfeed status kv --json`,
		Args: cli.Args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.name = args[0]
				if o.name == "" {
					return cli.WrongUse(cmd, "the feed's NAME is empty")
				}
			}
			return o.run(cmd.Context(), a)
		},
	}
	a.AddOutput(cmd, true)
	a.AddWatch(cmd)
	return cmd
}

func (o *statusOptions) run(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return cli.Watch(ctx, a, func() ([]*admin.Status, error) { return o.load(ctx, s) },
		func(all []*admin.Status) error {
			switch {
			case a.JSON && o.name != "":
				return a.PrintJSON(all[0])
			case a.JSON:
				return a.PrintJSON(all)
			case len(all) == 0:
				return a.PrintLine("there are no feeds; `rowfeed feed add NAME --table T` makes one")
			}
			return printStatus(a, all)
		})
}

func (o *statusOptions) load(ctx context.Context, s *cli.Session) ([]*admin.Status, error) {
	var feeds []*rowfeed.Feed
	var err error
	if o.name == "" {
		feeds, err = s.Feeds(ctx)
	} else {
		var f *rowfeed.Feed
		f, err = s.Feed(ctx, o.name)
		feeds = []*rowfeed.Feed{f}
	}
	if err != nil {
		return nil, err
	}
	all := []*admin.Status{}
	for _, f := range feeds {
		status, err := f.Admin().Status(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, status)
	}
	return all, nil
}

func printStatus(a *cli.App, all []*admin.Status) error {
	var rows []table.Row
	var notes []string
	for _, s := range all {
		waiting, vanished, published := fmt.Sprint(s.Waiting), "?", "never"
		if s.Waiting >= admin.MaxWaiting {
			waiting += " or more"
		}
		if s.Waiting > 0 {
			waiting += fmt.Sprintf(", oldest %s", age(s.OldestSeconds))
		}
		if s.Vanished != nil {
			vanished = fmt.Sprint(*s.Vanished)
		}
		if s.PublishedAt != nil {
			published = s.PublishedAt.Format(time.RFC3339)
		}
		head := fmt.Sprint(s.Head)
		if s.HoldersTold != "" { // a feed with ULIDs
			var shards []string
			head, shards = shardNotes(s)
			// No time of publishing is recorded for such a feed, and its readers receive no deletes.
			published, vanished = "-", "-"
			notes = append(notes, shards...)
		}
		switch vanished {
		case "?":
			notes = append(notes, s.Name+": vanished rows were not counted, because counting took more than 2 s")
		case "-", "0":
		default:
			notes = append(notes, s.Name+": vanished rows are gone from the table, but no delete was recorded: "+
				"`rowfeed repair "+s.Name+"` records it")
		}
		rows = append(rows, table.Row{s.Name, s.Table, s.State, head, published, waiting, vanished})
		if s.Term != "" {
			note := s.Name + ": term " + s.Term
			if s.TermSince != nil {
				note += " since " + s.TermSince.Format(time.RFC3339)
			}
			notes = append(notes, note)
		}
		if p := s.Publisher; p != nil {
			notes = append(notes, fmt.Sprintf("%s: published by %s since %s (epoch %d)",
				s.Name, process(p.Owner), p.Since.Format(time.RFC3339), p.Epoch))
		}
		if s.Failure != nil {
			notes = append(notes, s.Name+": publisher "+fails(a, *s.Failure, ""))
		}
		for _, p := range s.Problems {
			notes = append(notes, fmt.Sprintf("%s: problem: %s", s.Name, p))
		}
		for _, b := range s.Blockers {
			if slices.ContainsFunc(s.Shards, func(shard admin.ShardStatus) bool {
				return shard.Holder != nil && shard.Holder.Session == b.Session
			}) {
				continue // shown with its shard
			}
			notes = append(notes, s.Name+": session "+blockerLine(b))
		}
		if u := s.BlockersUnseen; u != nil {
			notes = append(notes, fmt.Sprintf("%s: not all sessions that hold changes back can be seen: %s. Next: %s",
				s.Name, u.Cause, u.Next))
		}
		for _, line := range newShardsPaused(s.Consumers) {
			notes = append(notes, s.Name+": consumer "+line)
		}
		for _, c := range s.Consumers {
			notes = append(notes, consumerNote(a, s.Name, c))
		}
	}
	err := a.PrintTable(table.Row{"feed", cli.Wide("table"), "state", "head", "published", "waiting", "vanished"}, rows)
	for _, n := range notes {
		if err == nil {
			err = a.PrintLine("%s", n)
		}
	}
	return err
}

// consumerNote says how far a consumer is behind the feed.
func consumerNote(a *cli.App, feed string, c admin.ConsumerStatus) string {
	who := c.Consumer
	switch {
	case c.Worker != nil:
		who += fmt.Sprintf(", shard %d,", c.Shard)
	case c.ShardCount > 1:
		who += fmt.Sprintf(", shard %d of %d,", c.Shard, c.ShardCount)
	}
	where := "is " + behind(c, " (%s)") + " behind"
	if c.Behind == nil && c.BehindSeconds == nil {
		where = "cannot be compared (another generation, ahead of the feed, or a time to begin at)"
	}
	note := fmt.Sprintf("%s: consumer %s %s, cursor %q", feed, who, where, string(c.Cursor))
	if l := c.Lease; l != nil {
		note += fmt.Sprintf(", at %s since %s", process(l.Owner), l.Since.Format(time.RFC3339))
	}
	if c.Paused {
		note += ", paused"
	}
	if c.Failure != nil {
		note += ", " + fails(a, *c.Failure, c.Target)
	}
	if c.DeadLetters > 0 {
		note += ", " + cli.Plural(c.DeadLetters, "dead letter")
	}
	return note
}

// maxStatement is how many characters of a statement a line shows. JSON has all that the database told.
const maxStatement = 100

// blockerLine describes a session with an open transaction.
func blockerLine(b admin.Blocker) string {
	line := fmt.Sprintf("%s (%s) has a transaction open", b.Session, strings.TrimSpace(b.User+" "+b.Host))
	if b.AgeSeconds != nil {
		line += " for " + age(*b.AgeSeconds)
	}
	statement := []rune(cmp.Or(strings.Join(strings.Fields(b.Statement), " "), "statement unknown"))
	if len(statement) > maxStatement {
		statement = append(statement[:maxStatement], '…')
	}
	return line + ", " + b.Scope + ": " + string(statement)
}

// shardNotes describes the shards of a feed with ULIDs. head is the head of the only shard.
func shardNotes(s *admin.Status) (head string, notes []string) {
	idle := 0
	for _, shard := range s.Shards {
		if shard.Holder == nil && len(shard.Waiting) == 0 {
			if idle++; idle > cli.ShardsShown {
				continue
			}
		}
		at := "empty"
		if shard.HeadAt != nil {
			at = fmt.Sprintf("head %s of %s", shard.Head, shard.HeadAt.Format(time.RFC3339))
		}
		note := fmt.Sprintf("%s: shard %d: %s", s.Name, shard.Shard, at)
		if shard.Holder != nil {
			note += "; held by " + holderLine(shard.Holder)
		}
		notes = append(notes, note)
		for i := range shard.Waiting {
			notes = append(notes,
				fmt.Sprintf("%s: shard %d: %s waits", s.Name, shard.Shard, holderLine(&shard.Waiting[i])))
		}
	}
	if idle > cli.ShardsShown {
		notes = append(notes,
			fmt.Sprintf("%s: and %s more, see --json", s.Name, cli.Plural(int64(idle-cli.ShardsShown), "shard")))
	}
	switch s.HoldersTold {
	case admin.HoldersWaitedFor:
		notes = append(notes, s.Name+": the holder of a shard is known only while another transaction waits for it")
	case admin.HoldersNone:
		notes = append(notes,
			s.Name+": holders of shards are not known: the database does not show them, or not to this login")
	}
	switch len(s.Shards) {
	case 0:
		return "-", notes
	case 1:
		return cmp.Or(s.Shards[0].Head, "-"), notes
	}
	return fmt.Sprintf("(%d shards)", len(s.Shards)), notes
}

func age(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
