package feeds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type feedAddOptions struct {
	name               string
	table              string
	mode               string
	capture            string
	key, columns       cli.NameList
	dataShards         int
	shardColumn        string
	positionColumn     string
	timeColumn         string
	tombstones         cli.Duration
	retain             cli.Retention
	acceptUntriggered  bool
	acceptTriggers     bool
	experimental       bool
	fence              bool
	publishedElsewhere bool
	adopt              bool
	adoptSequence      string
	adoptCursors       string
	print              bool
	dryRun             bool
}

const feedAddHelp = `Creates a feed of a table. By default the table is not altered: triggers record the
keys of rows that are inserted, updated or deleted. The table may be in use, and may
have rows: these are recorded too, in batches. If the command is interrupted, run it
again with the same arguments: it continues where it stopped. Running it again for a
complete feed changes nothing.

NAME starts with a lower-case letter and has up to 39 characters of a-z, 0-9 and _.
The table may be given as schema.table. Names that contain dots are quoted:
"odd.schema"."odd.table".

--key names the columns of a unique index, if the table has no primary key or if it
does not suit. --columns restricts the delivered columns. By default they are all
columns that the table has at the time of a fetch. --tombstones says how long deletes
are kept for readers that were away.

--data-shards divides the keys into this number of shards, for readers that share the
feed: by a checksum of the key, or by an integer column of the key, modulo the number
(--shard-column). 1024 suits any number of readers. Any other integer column that is
NOT NULL can be the --shard-column, too: its values are then the data shards, from 0 to
below --data-shards. rowfeed only reads it, and entries have it as any other column.
Rows with other values are refused; those that come later are in no part of the feed,
which "check" and "status" report.

With --capture app there are no triggers: the writers record their changes themselves.

With --capture column the position of a row is a column of the row, feed_sync_id. The
command adds this column, an int column shard and an index to the table. Writers set
feed_sync_id to NULL in the statement of their change, and delete rows with the
statements that "feed show" prints. --adopt keeps the positions of a table that has
such a column already. The sequence then begins at the highest of them, or at the
value of a former table of sequences that --adopt-sequence names (columns name and
value). --adopt-cursors creates consumers from a former table of cursors (columns name
and value or position, and feed if it has cursors of several feeds). A consumer with
several rows, one for each shard, continues from the lowest. Stop the former publisher
and consumers first. With --data-shards the rows get their shards in batches, in the
column shard. If it has values of its own, the command is refused, and --shard-column
shard keeps them.

--fence adds two triggers to the table. They refuse every value of feed_sync_id but
NULL that does not come from rowfeed's publisher. A former publisher that still runs
then fails with an error that names the feed. Use it with --adopt: without a fence
rows with positions of a second publisher can be missed by readers, until "status" or
"check" finds them and "repair" gives them new positions.

--published-elsewhere adopts a table and leaves the numbering to your own publisher:
rowfeed serves the feed, and gives no position. Your publisher must advance the row of
--adopt-sequence in the transaction in which it gives positions. A page shows positions
up to the committed value of that row, so no lower one can follow. Rows above it are
not shown, and "status" reports them. Such a publisher does not publish deletes: a
reader keeps the deleted row. "feed upgrade --published-here" lets rowfeed take over.

With --mode blocking rows are only inserted, and each row contains its position: a
ULID of 16 bytes in --position-column (uuid or bytea on PostgreSQL, BLOB on SQLite,
binary(16) on MariaDB, MySQL and SQL Server). Writers get it from Feed.Lock in the
transaction that inserts the row. Each value of --shard-column, an integer, is a shard
with an order and cursors of its own. A unique index on both columns, the shard first,
must exist.

With --mode outbox rows are only inserted, too, and writers append a record of each
row to rowfeed's table outbox_NAME, in the transaction of the row. They do so with
Feed.AppendOutbox, or with an INSERT of their own (docs/ULIDS.md). With --capture
trigger a trigger does it, for the shard in --shard-column. The publisher, or the
first reader, gives ULIDs to the records.

--retain 30d keeps entries for this time, counted from the time in their ULID;
--retain 1000000 keeps this number of each shard. A publisher purges all others.
Readers that have not read them get 410 entries-expired. The rows of the table stay.
Rows that exist already are placed behind the head, with the times of --time-column if
it is given; see "feed backfill".

--dry-run says what would be added to the table and written into its rows, and with
--adopt from which positions the feed and its consumers go on. It refuses what the
command would refuse, and changes nothing.

--print needs no server: it prints the SQL for the kind of database that --db names,
and changes nothing. Columns of --key are then given with their types, as id:bigint;
so are a --shard-column that is not in the key, and with --mode blocking and outbox
--position-column and --time-column. Run the script on a database with rowfeed's
tables. With --mode outbox run this command there afterwards, or "feed backfill", to
place the rows that the table has.

With --json: {"feed":"kv","table":"kv","key":["id"],"changed":true,"rows":3}; rows is
the number recorded (with --mode outbox: placed) by this call, 0 if positions are kept.`

func newFeedAdd(a *cli.App) *cobra.Command {
	o := &feedAddOptions{}
	cmd := &cobra.Command{
		Use:   "add NAME --table T",
		Short: "Create a feed of a table",
		Long:  feedAddHelp,
		Example: `  rowfeed feed add kv --table kv
  rowfeed feed add people --table hr.people --key email --columns email,name --tombstones 90d
  rowfeed feed add lines --table order_lines --data-shards 1024 --shard-column order_id
  rowfeed feed add orders --table orders --capture column --adopt --adopt-sequence sequences --fence
  rowfeed feed add orders --table orders --capture column --published-elsewhere --adopt-sequence sequences
  rowfeed feed add events --table events --mode blocking --position-column ulid --shard-column shard
  rowfeed feed add orders --table orders --mode outbox --capture trigger --shard-column customer
  rowfeed feed add kv --table kv --key id:bigint --print --db postgres:
  rowfeed feed add events --table events --key id:bigint --mode blocking --position-column ulid:uuid ` +
			`--shard-column shard:int --print --db postgres:`,
		Args: cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), a)
		},
	}
	o.addFlags(cmd.Flags())
	a.AddOutput(cmd, false)
	return cmd
}

func (o *feedAddOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.table, "table", "", "the `table` that the feed follows")
	f.StringVar(&o.mode, "mode", rowfeed.ModeSequence, "how positions are made: sequence, blocking or outbox")
	f.StringVar(&o.capture, "capture", "",
		"how changes are recorded: trigger (default), app (default with --mode outbox) or column")
	f.Var(&o.key, "key", "key columns, as c1[:type],c2 (default: the primary key)")
	f.Var(&o.columns, "columns", "columns delivered, as a,b (default: all)")
	f.IntVar(&o.dataShards, "data-shards", 1,
		fmt.Sprintf("the `number` of data shards, 1 to %d", rowfeed.MaxDataShards))
	f.StringVar(&o.shardColumn, "shard-column", "",
		"the integer `column` that gives a row's data shard, as c[:type] (default: a checksum of the key); "+
			"with --mode blocking and outbox the column that has the shard")
	f.StringVar(&o.positionColumn, "position-column", "",
		"the `column` that holds a row's ULID, as c[:type] (--mode blocking)")
	f.StringVar(&o.timeColumn, "time-column", "",
		"the `column` with the times of rows that exist already, as c[:type] (--mode outbox)")
	f.Var(&o.tombstones, "tombstones", "how long deletes are kept, with mode sequence (default 30d)")
	f.Var(&o.retain, "retain", "how long entries are kept, like 30d, or how many of each shard, "+
		"like 1000000 (--mode outbox; default: forever)")
	f.BoolVar(&o.acceptUntriggered, "accept-untriggered", false,
		"accept a table whose rows can be written without triggers; check and repair find such writes")
	f.BoolVar(&o.acceptTriggers, "accept-triggers", false,
		"accept, with capture column, triggers that fire when a position is written")
	f.BoolVar(&o.experimental, "experimental", false,
		"make a feed although rowfeed is not tested on this database: see docs/CAPABILITIES.md")
	f.BoolVar(&o.fence, "fence", false,
		"make triggers that refuse a feed_sync_id which rowfeed's publisher does not give (capture column)")
	f.BoolVar(&o.publishedElsewhere, "published-elsewhere", false,
		"serve a table whose positions your own publisher continues to give (capture column; with --adopt-sequence)")
	f.BoolVar(&o.adopt, "adopt", false, "keep the positions in the table's own column feed_sync_id (capture column)")
	f.StringVar(&o.adoptSequence, "adopt-sequence", "",
		"continue from the value in a former `table` of sequences: TABLE[:NAME]")
	f.StringVar(&o.adoptCursors, "adopt-cursors", "", "create consumers from a former `table` of cursors")
	f.BoolVar(&o.print, "print", false, "print the SQL instead of running it; needs no server")
	f.BoolVar(&o.dryRun, "dry-run", false, "only say what would be made and written")
}

func (o *feedAddOptions) spec() (rowfeed.FeedSpec, error) {
	if o.tombstones.Given && o.tombstones.Duration <= 0 {
		return rowfeed.FeedSpec{}, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "tombstones",
			Object: fmt.Sprintf("feed %q", o.name),
			Cause:  "tombstones: deletes must be kept for some time", Next: "give a duration like 30d"}
	}
	if o.dataShards < 1 || o.dataShards > rowfeed.MaxDataShards { // to the library 0 means a default
		return rowfeed.FeedSpec{}, notDataShards(o.name, o.dataShards,
			"leave it out for one shard; 1024 is a good choice for a feed that is read in parallel")
	}
	return rowfeed.FeedSpec{Name: o.name, Table: o.table, Mode: o.mode, Capture: feedtype.Capture(o.capture),
		Key: slices.Clone(o.key.Names), Columns: slices.Clone(o.columns.Names),
		DataShards: o.dataShards, ShardColumn: o.shardColumn, PositionColumn: o.positionColumn,
		TimeColumn: o.timeColumn,
		Tombstones: o.tombstones.Duration, Retain: o.retain.Retention, AcceptUntriggered: o.acceptUntriggered,
		AcceptTriggers: o.acceptTriggers, Fence: o.fence, Adopt: o.adopt, AdoptSequence: o.adoptSequence,
		AdoptCursors: o.adoptCursors, PublishedElsewhere: o.publishedElsewhere}, nil
}

func (o *feedAddOptions) run(ctx context.Context, a *cli.App) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	if o.print {
		return o.printSQL(a, spec)
	}
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	d, err := open.Dialect(a.URL)
	if err != nil {
		return err
	}
	if err := o.tested(d); err != nil {
		return err
	}
	warning := brokenByTriggers(d, spec)
	if o.dryRun {
		return o.preview(ctx, a, s, spec, warning)
	}
	before, err := s.Feed(ctx, o.name)
	if err != nil && !errors.Is(err, rowfeed.UnknownFeed) {
		return err
	}
	complete := err == nil && slices.Contains([]string{"active", "elsewhere"}, before.State())
	if !complete {
		warn(a, warning)
	}
	if err != nil && o.keepsPositions() {
		if err := o.announce(ctx, a, s, spec); err != nil {
			return err
		}
	}
	// Rows that keep their positions are not recorded. Their keys get shards.
	kept := o.adopt || o.publishedElsewhere || err == nil && before.State() == "sharding"
	var rows, keys int64
	told := &rows
	doing, what, done := "recording rows of "+o.table, "row", "recorded"
	if kept {
		told, doing, what, done = &keys, "giving keys their shards", "key", "given their shards"
	}
	bar := a.NewProgress(doing, func() (int64, error) {
		f, err := s.Feed(ctx, o.name) // exists as soon as rows are recorded
		if err != nil {
			return 0, err
		}
		return f.Admin().CountWhere(ctx, "")
	})
	f, err := s.AddFeed(ctx, spec, func(n int64) { *told = n; bar.Set(n) })
	bar.Done()
	if err != nil {
		if *told > 0 {
			fmt.Fprintf(a.Stderr, "rowfeed: %s %s before the command failed; run it again to continue\n",
				cli.Plural(*told, what), done)
		}
		return err
	}
	if err := o.adoption(ctx, a, f, complete); err != nil {
		return err
	}
	if o.publishedElsewhere && !complete {
		fmt.Fprintf(a.Stderr, "rowfeed: feed %s serves positions that your publisher gives, up to the committed "+
			"value of its sequence. Deletes are not published: readers keep such rows until rowfeed publishes "+
			"(`rowfeed feed upgrade %s --published-here`) and rows are deleted as `rowfeed feed show %s` says\n",
			o.name, o.name, o.name)
	}
	if o.adopt && !o.publishedElsewhere && !o.fence && !complete {
		adviseFence(a, o.name)
	}
	info, err := f.Info(ctx)
	if err != nil {
		return err
	}
	if !complete && info.Mode == rowfeed.ModeSequence && f.Capture() != feedtype.CaptureColumn &&
		slices.ContainsFunc(info.Columns, func(c rowfeed.Column) bool { return c.Name == dialect.PositionColumn }) {
		fmt.Fprintf(a.Stderr, "rowfeed: feed %s gives positions of its own: readers that continue from a value of the "+
			"table's column %s miss rows. To keep these positions, drop the feed and add it with "+
			"--capture column --adopt\n", o.name, dialect.PositionColumn)
	}
	if a.JSON {
		key := make([]string, len(info.Key))
		for i, c := range info.Key {
			key[i] = c.Name
		}
		return a.PrintJSON(struct {
			Feed    string   `json:"feed"`
			Table   string   `json:"table"`
			Key     []string `json:"key"`
			Changed bool     `json:"changed"`
			Rows    int64    `json:"rows"`
		}{o.name, f.Source().String(), key, !complete, rows})
	}
	if complete {
		return a.PrintLine("%s: is a feed of table %s already, nothing changed", o.name, f.Source())
	}
	text := fmt.Sprintf("%s: follows table %s by key (%s)", o.name, f.Source(), columnNames(info.Key))
	by := cli.Plural(rows, "row") + " recorded by this call"
	if info.ShardIDs != nil { // a feed with ULIDs
		text += ", mode " + info.Mode
		by = cli.Plural(rows, "row") + " placed behind the head by this call"
	}
	if info.PositionColumn != "" { // writers give positions, so no rows were recorded
		return a.PrintLine("%s", text)
	}
	text += ", capture " + string(f.Capture())
	if info.DataShards > 1 {
		text += ", " + shardsText(info)
	}
	switch {
	case kept && info.DataShards > 1 && !ownShards(info):
		by = "keys given their shards"
	case kept:
		by = "positions kept"
	}
	return a.PrintLine("%s, %s", text, by)
}

// tested refuses a database that is not tested, unless the flag --experimental is set, and the flag on any other.
func (o *feedAddOptions) tested(d *dialect.Dialect) error {
	e := &rowfeed.Error{Code: rowfeed.Refused, Object: fmt.Sprintf("feed %q", o.name), Param: "experimental"}
	switch {
	case d.Experimental != "" && !o.experimental:
		e.Cause, e.Next = "rowfeed is not tested on this database: "+d.Experimental,
			"use --print for the SQL alone, or --experimental to make the feed on a database without production data"
	case d.Experimental == "" && o.experimental:
		e.Code, e.Cause = rowfeed.InvalidRequest, "rowfeed is tested on this database"
		e.Next = "leave --experimental out"
	default:
		return nil
	}
	return e
}

// ownShards tells whether a column that is not in the key holds the data shards.
func ownShards(info *rowfeed.Info) bool {
	return info.ShardColumn != "" && !slices.ContainsFunc(info.Key, func(c rowfeed.Column) bool {
		return c.Name == info.ShardColumn
	})
}

// adviseFence says what a former publisher that still runs can do.
func adviseFence(a *cli.App, feed string) {
	fmt.Fprintf(a.Stderr, "rowfeed: stop the former publisher: readers can miss rows to which it gives positions. "+
		"`rowfeed feed upgrade %s --fence` makes it fail\n", feed)
}

// printSQL prints the script that creates the feed. It connects to no database.
func (o *feedAddOptions) printSQL(a *cli.App, spec rowfeed.FeedSpec) error {
	cfg, _, err := a.Settings()
	if err != nil {
		return err
	}
	d, err := open.Dialect(a.URL)
	if err != nil {
		return err
	}
	steps, err := rowfeed.PrintFeed(d, &cfg, spec)
	if err != nil {
		return err
	}
	warn(a, brokenByTriggers(d, spec))
	return PrintScript(a, d, steps)
}
