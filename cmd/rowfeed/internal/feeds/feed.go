package feeds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/spf13/cobra"
)

func newFeed(a *cli.App) *cobra.Command {
	cmd := cli.NewGroup(
		"feed",
		"Create, list, show, upgrade, bump and drop feeds, and grant access to them",
		`Creates, lists, shows, upgrades, bumps and drops feeds, and grants logins of the
database access to them. A feed is the ordered stream of the rows of one table.`,
		`  rowfeed feed add kv --table kv
  rowfeed feed list
  rowfeed feed show kv`,
	)
	listCmd := &cobra.Command{
		Use:   "list",
		Short: "List the feeds",
		Long: `Lists the feeds, ordered by name.

With --json: [{"name":"kv","table":"kv","mode":"sequence","capture":"trigger",
"state":"active","generation":1,"data_shards":1}]. The state is creating, filling,
sharding, active, or elsewhere if your own publisher gives the positions.`,
		Example: "  rowfeed feed list",
		Args:    cli.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return listFeeds(cmd.Context(), a) },
	}
	a.AddOutput(listCmd, true)
	show := &feedShowOptions{}
	showCmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a feed's key, columns and head",
		Long: `Shows a feed's key, its delivered columns and its head. The head is the cursor of a
reader that has read everything.

With --json: {"name":"kv","mode":"sequence","state":"active","generation":1,
"head":"3","key":[{"name":"id","type":"INTEGER","kind":"dynamic"}],"columns":[…],
"base64":[],"data_shards":1,"table":"kv","capture":"trigger","delete":["DELETE …"],
"grants":{"writers":["app"]}}.

"kind" says how the values of a column are written in JSON. "base64" names the columns
whose bytes are written as base64. "delete" has the
statements with which writers delete a row: in one transaction, each with the key as
its parameters. A feed with ULIDs has no such statements. It has "shard_ids", and with
mode blocking "position_column"; its head is "" if it has more than one shard.
"grants" are those of "feed grant".`,
		Example: "  rowfeed feed show kv --json",
		Args:    cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			show.name = args[0]
			return show.run(cmd.Context(), a)
		},
	}
	a.AddOutput(showCmd, true)
	cmd.AddCommand(newFeedAdd(a), newFeedBackfill(a), newFeedBump(a), listCmd, showCmd, newFeedDrop(a),
		newFeedUpgrade(a), newFeedGrant(a), newFeedRevoke(a))
	return cmd
}

func newFeedDrop(a *cli.App) *cobra.Command {
	o := &feedDropOptions{}
	cmd := &cobra.Command{
		Use:   "drop NAME",
		Short: "Remove a feed: its triggers, changes and positions",
		Long: `Removes a feed's triggers, changes, positions and outbox, the functions of its
writers, the states of its shards, and the rights of "feed grant". The table is as it
was before "feed add", but keeps its ULIDs if it has any. The name and the generation
are kept, so that old cursors are refused if a feed of that name is added again.
Dropping a feed twice changes nothing.

A feed that was added with --adopt leaves its positions in the rows. If it is added
again with --adopt and the same settings, it continues, and old cursors stay valid. The
command says beforehand if they do not, and why: for example because changes were not
published yet.

--hand-back is for the way back to a former publisher. It writes the feed's highest
position to the table of --adopt-sequence, and the positions of consumers to the table
of --adopt-cursors. Rows that were republished or unpublished get NULL as their
position. It prints each value before it is written, and can be repeated.

On a terminal it says how many consumers read the feed, and asks, unless --yes is given.
--dry-run only says so.`,
		Example: "  rowfeed feed drop kv\n  rowfeed feed drop kv --hand-back --dry-run",
		Args:    cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), a)
		},
	}
	o.consent.Bind(cmd)
	cmd.Flags().BoolVar(&o.handBack, "hand-back", false,
		"write positions to the tables of --adopt-sequence and --adopt-cursors, for the former publisher and readers")
	return cmd
}

// feedLine is a feed in the JSON of "feed list".
type feedLine struct {
	Name       string `json:"name"`
	Table      string `json:"table"`
	Mode       string `json:"mode"`
	Capture    string `json:"capture"`
	State      string `json:"state"`
	Generation int64  `json:"generation"`
	DataShards int    `json:"data_shards"`
}

// shardsText describes the shards of a feed: "1 data shard", "8 data shards by id", "2 shards by customer: 3, 5".
func shardsText(info *rowfeed.Info) string {
	text := cli.Plural(int64(info.DataShards), "data shard")
	if info.ShardIDs != nil { // a feed with ULIDs, whose shards have their own orders
		text = cli.Plural(int64(len(info.ShardIDs)), "shard")
	}
	if info.MoreShardIDs {
		text = "more than " + text
	}
	if info.ShardColumn != "" {
		text += " by " + info.ShardColumn
	}
	if n := len(info.ShardIDs); 0 < n && n <= cli.ShardsShown {
		text += ": " + strings.Trim(strings.ReplaceAll(fmt.Sprint(info.ShardIDs), " ", ", "), "[]")
	}
	return text
}

func listFeeds(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	feeds, err := s.Feeds(ctx)
	if err != nil {
		return err
	}
	lines, rows := []feedLine{}, []table.Row{}
	for _, f := range feeds {
		l := feedLine{f.Name(), f.Source().String(), f.Mode(), string(f.Capture()), f.State(), f.Generation(),
			f.DataShards()}
		lines = append(lines, l)
		rows = append(rows, table.Row{l.Name, l.Table, l.Mode, l.Capture, l.State, l.Generation, l.DataShards})
	}
	switch {
	case a.JSON:
		return a.PrintJSON(lines)
	case len(lines) == 0:
		return a.PrintLine("there are no feeds; `rowfeed feed add NAME --table T` makes one")
	}
	return a.PrintTable(table.Row{"feed", "table", "mode", "capture", "state", cli.Wide("generation"), "data shards"},
		rows)
}

type feedShowOptions struct {
	name string
}

func (o *feedShowOptions) run(ctx context.Context, a *cli.App) error {
	return a.WithFeed(ctx, o.name, func(_ *cli.Session, f *rowfeed.Feed) error {
		info, err := f.Info(ctx)
		if err != nil {
			return err
		}
		if a.JSON {
			return a.PrintJSON(struct {
				*rowfeed.Info
				Table   string `json:"table"`
				Capture string `json:"capture"`

				Delete []string       `json:"delete"`
				Grants rowfeed.Grants `json:"grants"`
			}{info, f.Source().String(), string(f.Capture()), f.Admin().DeleteSQL(), f.Admin().Granted()})
		}
		head := string(info.Head)
		switch {
		case head == "" && len(info.ShardIDs) > 1:
			head = "each shard has its own, see `rowfeed status " + info.Name + "`"
		case head == "":
			head = `"" (nothing published yet)`
		}
		fields := []table.Row{
			{"feed", info.Name}, {"table", f.Source().String()}, {"mode", info.Mode}, {"capture", string(f.Capture())},
			{"state", info.State}, {"generation", info.Generation}, {"head", head},
			{"key", columnNames(info.Key)}, {"shards", shardsText(info)},
			{"writers", loginsText(f.Admin().Granted().Writers)}, {"readers", loginsText(f.Admin().Granted().Readers)},
		}
		if info.PositionColumn != "" {
			fields = append(fields, table.Row{"position column", info.PositionColumn})
		}
		if statements := f.Admin().DeleteSQL(); len(statements) > 0 {
			fields = append(fields, table.Row{"to delete a row", strings.Join(statements, ";\n")})
		}
		if err := a.PrintTable(table.Row{"property", "value"}, fields); err != nil {
			return err
		}
		if err := a.PrintLine(""); err != nil {
			return err
		}
		var rows []table.Row
		for _, c := range info.Columns {
			rows = append(rows, table.Row{c.Name, c.Type, string(c.Kind)})
		}
		return a.PrintTable(table.Row{"column", "type", "kind"}, rows)
	})
}

func columnNames(columns []rowfeed.Column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

type feedDropOptions struct {
	mode     string // the feed's
	name     string
	handBack bool
	left     string // what was not handed back when an earlier drop was interrupted
	consent  cli.Consent
}

func (o *feedDropOptions) run(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := s.Feed(ctx, o.name)
	gone := errors.Is(err, rowfeed.UnknownFeed)
	if err != nil && !gone {
		return err
	}
	if !gone {
		o.mode = f.Mode()
	}
	if gone && !o.handBack {
		plan, err := s.PreviewDrop(ctx, o.name, false)
		if err != nil {
			return err
		}
		if !plan.Interrupted {
			return a.PrintLine("%s: is dropped already, nothing changed%s", o.name, notHandedBack(o.name, plan))
		}
		o.left = notHandedBack(o.name, plan)
	}
	if o.handBack || a.Ask != nil || o.consent.DryRun {
		effect, err := o.effect(ctx, s, gone)
		if err != nil {
			return err
		}
		switch {
		case o.consent.DryRun:
			return a.PrintLine("%s: %s Nothing was changed.", o.name, effect)
		case a.Ask == nil: // a script is not asked
			fmt.Fprintf(a.Stderr, "rowfeed: feed %s: %s\n", o.name, effect)
		default:
			if err := a.Confirm(ctx, o.consent, o.name, "drop the feed", effect); err != nil {
				return err
			}
		}
	}
	if o.handBack {
		plan, err := s.HandBackFeed(ctx, o.name)
		if err != nil {
			return err
		}
		return a.PrintLine("%s: dropped. %s", o.name, handBackText(plan, "Written"))
	}
	if err := s.DropFeed(ctx, o.name); err != nil {
		return err
	}
	if gone {
		return a.PrintLine("%s: dropped; what an earlier drop had left, because it was interrupted, is removed%s",
			o.name, o.left)
	}
	return a.PrintLine("%s: dropped", o.name)
}

// notHandedBack says what handing back a feed would write that is dropped, or almost.
func notHandedBack(feed string, plan *rowfeed.DropPlan) string {
	if len(plan.NotHandedBack) == 0 {
		return ""
	}
	return fmt.Sprintf(". It was not handed back: `rowfeed feed drop %s --hand-back` would write: %s", feed,
		strings.Join(plan.NotHandedBack, "; "))
}

// effect names the feed's consumers, and says what becomes of its positions and what is written to other tables.
func (o *feedDropOptions) effect(ctx context.Context, s *cli.Session, gone bool) (string, error) {
	plan, err := s.PreviewDrop(ctx, o.name, o.handBack)
	if err != nil {
		return "", err
	}
	var texts []string
	if !gone {
		if texts, err = o.readers(ctx, s); err != nil {
			return "", err
		}
		switch {
		case o.mode == rowfeed.ModeBlocking:
			texts = append(texts, "The ULIDs stay in the table's rows. If a feed of this name is added again, it "+
				"refuses today's cursors.")
		case !plan.Keeps:
			texts = append(texts, "Its changes and positions are lost.")
		case plan.Restart == "":
			texts = append(texts, fmt.Sprintf("Its positions stay in the table's rows. Added again with --adopt, it "+
				"continues at position %d, and cursors stay valid%s.", plan.Head, lostDeletes(plan.From)))
		default:
			texts = append(texts, fmt.Sprintf("Its positions stay in the table's rows. Added again with --adopt, it "+
				"refuses today's cursors: %s.", plan.Restart))
		}
	}
	if plan.Interrupted {
		texts = append(texts, "An earlier drop was interrupted: what it has left of triggers, tables and rights is "+
			"to be removed"+o.left+".")
	}
	if o.handBack {
		texts = append(texts, handBackText(plan, "To be written"))
	}
	return strings.Join(texts, " "), nil
}

func handBackText(plan *rowfeed.DropPlan, doing string) string {
	text := doing + ": nothing, the tables have these values."
	if len(plan.Written) > 0 {
		text = doing + ": " + strings.Join(plan.Written, "; ") + "."
	}
	if len(plan.NotWritten) > 0 {
		text += " Not written: " + strings.Join(plan.NotWritten, "; ") + "."
	}
	return text
}

// readers names the feed's consumers.
func (o *feedDropOptions) readers(ctx context.Context, s *cli.Session) ([]string, error) {
	names, err := consumersOf(ctx, s, o.name, func(admin.ConsumerStatus) bool { return true })
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return []string{"No consumer in this database reads it."}, nil
	}
	return []string{fmt.Sprintf("%s in this database can no longer read it (%s).",
		cli.Plural(int64(len(names)), "consumer"), strings.Join(names, ", "))}, nil
}

// startingOver says who has to begin again when a feed gets a new generation. The database knows the cursors of
// consumers and relays that it stores, and of no other reader.
func startingOver(ctx context.Context, s *cli.Session, feed string) (string, error) {
	names, err := consumersOf(ctx, s, feed, func(c admin.ConsumerStatus) bool { return !c.Cursor.IsBeginning() })
	if err != nil {
		return "", err
	}
	who := "No consumer in this database has read it."
	if len(names) > 0 {
		who = fmt.Sprintf("%s in this database must begin again at the beginning (%s).",
			cli.Plural(int64(len(names)), "consumer"), strings.Join(names, ", "))
	}
	return who + " So must every reader that stores its cursor elsewhere.", nil
}

// gainingShards says what another number of data shards does to rows that have none in a column of their table. It is
// empty if there are no such rows.
func gainingShards(ctx context.Context, f *rowfeed.Feed, to int) (string, error) {
	n, err := f.Admin().PreviewReshard(ctx, to)
	if n == 0 || err != nil {
		return "", err
	}
	text := cli.Plural(n, "row") + " without a data shard so far will be published again"
	if f.Capture() == feedtype.CaptureColumn {
		text += ": rowfeed sets their feed_sync_id to NULL"
	}
	return text + ".", nil
}

// dataShardsEffect names the consumers that get entries again when a feed gets another number of data shards.
func dataShardsEffect(ctx context.Context, s *cli.Session, f *rowfeed.Feed, from, to int) (string, error) {
	gaining, err := gainingShards(ctx, f, to)
	if gaining != "" {
		gaining = " " + gaining
	}
	if err != nil || feedtype.MaxParts(from) == feedtype.MaxParts(to) {
		return "All cursors stay valid." + gaining, err
	}
	names, err := consumersOf(ctx, s, f.Name(), func(c admin.ConsumerStatus) bool { return c.ShardCount > 1 })
	if err != nil {
		return "", err
	}
	text := "Cursors of the whole feed stay valid." + gaining
	if len(names) > 0 {
		text += " Consumers of parts in this database begin at the lowest of their cursors, and get what is above it " +
			"again: " + strings.Join(names, ", ") + "."
	}
	text += " Readers of parts that store their cursors elsewhere must begin at the lowest of theirs."
	most := feedtype.MaxParts(to)
	many, err := consumersOf(ctx, s, f.Name(), func(c admin.ConsumerStatus) bool { return c.ShardCount > most })
	if err == nil && len(many) > 0 {
		text += fmt.Sprintf(" Consumers with more than %d shards fail until they are run with fewer: %s.", most,
			strings.Join(many, ", "))
	}
	if err == nil && most < feedtype.MaxParts(from) {
		text += fmt.Sprintf(" At most %d readers can share the feed then, in place of %d.", most,
			feedtype.MaxParts(from))
	}
	return text, err
}

// consumersOf returns the names of the feed's consumers with a cursor that the condition selects, sorted.
func consumersOf(
	ctx context.Context, s *cli.Session, feed string, which func(admin.ConsumerStatus) bool,
) (names []string, err error) {
	cursors, err := s.Admin().Consumers(ctx, rowfeed.ConsumerID{Feed: feed})
	for _, c := range cursors {
		if which(c) && !slices.Contains(names, c.Consumer) {
			names = append(names, c.Consumer)
		}
	}
	slices.Sort(names)
	return names, err
}
