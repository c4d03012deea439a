package feeds

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type feedAddOptions struct {
	name              string
	table             string
	mode              string
	capture           string
	key, columns      cli.NameList
	dataShards        int
	shardColumn       string
	positionColumn    string
	timeColumn        string
	tombstones        cli.Duration
	retain            cli.Retention
	acceptUntriggered bool
	acceptTriggers    bool
	adopt             bool
	adoptSequence     string
	adoptCursors      string
	print             bool
	json              bool
}

func newFeedAdd(a *cli.App) *cobra.Command {
	o := &feedAddOptions{}
	cmd := &cobra.Command{
		Use:   "add NAME --table T",
		Short: "Make a feed of a table",
		Long: `Makes a feed of a table. By default the table is not altered: triggers record the
keys of rows that are inserted, updated or deleted. A table that has rows already can
be in use meanwhile; its rows are recorded too, in batches. When that breaks off, run
the same line again: it goes on where it stopped. Once all is done, running it again
changes nothing.

NAME starts with a lower-case letter and has up to 39 of a-z, 0-9 and _. The table may
be given as schema.table; names that hold dots are written "odd.schema"."odd.table".

--key names the columns of a unique index, where the primary key will not do or is
missing. --columns bounds what is delivered; by default it is every column that the
table has at the time of a fetch. --tombstones says how long deletes are kept for
readers that were away. --data-shards divides the keys among so many shards, by a
checksum of the key or by an integer column of the key (--shard-column, modulo the
number), for readers that share the feed: 1024 leaves room for any number of them. With
--capture app there are no triggers: the writers record
their changes themselves.

With --capture column a row's position is a column of the row, feed_sync_id, which the
table gets together with an int column shard and an index; writers set feed_sync_id to
NULL in the statement of their change, and delete as "feed show" says. --adopt keeps
the positions of a table that has such a column already; the sequence begins at the
highest of them, or at the value of a former table of sequences (columns name and
value) that --adopt-sequence names. --adopt-cursors makes consumers of a former table
of cursors (columns name and value or position, and feed where there are several).
Stop the former publisher and consumers first. With --data-shards the rows get their
shards in batches; what a column shard of the table's own says is written over.

With --mode blocking rows are only appended, and hold their positions themselves: ULIDs,
16 bytes in --position-column (uuid or bytea on PostgreSQL, binary(16) on MariaDB and
MySQL, BLOB on SQLite), which writers take with Feed.Lock in the transaction that
inserts them. Each value of --shard-column, an integer, is a shard with an order of its
own, read with its own cursor. A unique index on both columns, the shard first, must be
there.

With --mode outbox rows are only appended, too, and writers append a record of each to
rowfeed's table outbox_NAME, in the transaction of the row: with Feed.AppendOutbox, by
an INSERT of their own (docs/ULIDS.md), or, with --capture trigger, by a trigger, in the
shard that --shard-column says. Whoever reads first, or the publisher, gives them ULIDs.
--retain 30d keeps entries for so long, counted from the time in their ULID, --retain
1000000 so many of each shard: a publisher purges the others, readers that had not come
to them get 410 entries-expired, and the rows of the table stay as they are.
Rows that are there already are placed behind the head, with the times of --time-column
where that is given; see "feed backfill".

--print needs no server: it prints the SQL for the kind of database that --db names,
and changes nothing. Columns of --key, and with --mode blocking and outbox those of
--position-column, --shard-column and --time-column, are then given with their types,
as id:bigint. Run the script on a database with rowfeed's tables. With --mode outbox run
this command there behind it, or "feed backfill", to place the rows that the table has.

With --json: {"feed":"kv","table":"kv","key":["id"],"changed":true,"rows":3}; rows is
the number recorded (with --mode outbox: placed) by this call, 0 where positions are
kept.`,
		Example: `  rowfeed feed add kv --table kv
  rowfeed feed add people --table hr.people --key email --columns email,name --tombstones 90d
  rowfeed feed add lines --table order_lines --data-shards 1024 --shard-column order_id
  rowfeed feed add orders --table orders --capture column --adopt --adopt-sequence sequences
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
		"the integer `column` of the key that gives a row's data shard (default: a checksum of the key); "+
			"with --mode blocking and outbox, of the table, that is the shard, as c[:type]")
	f.StringVar(&o.positionColumn, "position-column", "",
		"the `column` that holds a row's ULID, as c[:type] (--mode blocking)")
	f.StringVar(&o.timeColumn, "time-column", "",
		"the `column` with the times of rows that are there already, as c[:type] (--mode outbox)")
	f.Var(&o.tombstones, "tombstones", "how long deletes are kept, with mode sequence (default 30d)")
	f.Var(&o.retain, "retain", "how long entries are kept, like 30d, or how many of each shard, "+
		"like 1000000 (--mode outbox; default: forever)")
	f.BoolVar(&o.acceptUntriggered, "accept-untriggered", false,
		"accept writes that fire no trigger; check and repair find them")
	f.BoolVar(&o.acceptTriggers, "accept-triggers", false,
		"accept, with capture column, triggers that fire when a position is written")
	f.BoolVar(&o.adopt, "adopt", false, "keep the positions in the table's own column feed_sync_id (capture column)")
	f.StringVar(&o.adoptSequence, "adopt-sequence", "",
		"go on from the value in a former `table` of sequences: TABLE[:NAME]")
	f.StringVar(&o.adoptCursors, "adopt-cursors", "", "consumers go on from a former `table` of cursors")
	f.BoolVar(&o.print, "print", false, "print the SQL instead of running it; needs no server")
	f.BoolVar(&o.json, "json", false, "print JSON")
}

func (o *feedAddOptions) spec() (rowfeed.FeedSpec, error) {
	if o.tombstones.Given && o.tombstones.Duration <= 0 {
		return rowfeed.FeedSpec{}, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "tombstones",
			Object: fmt.Sprintf("feed %q", o.name),
			Cause:  "tombstones: deletes must be kept for some time", Next: "give a duration like 30d"}
	}
	if o.dataShards < 1 || o.dataShards > rowfeed.MaxDataShards { // to the library 0 means a default
		return rowfeed.FeedSpec{}, notDataShards(o.name, o.dataShards,
			"leave it out for one; 1024 is a good choice for a feed that is read in parallel")
	}
	return rowfeed.FeedSpec{Name: o.name, Table: o.table, Mode: o.mode, Capture: feedtype.Capture(o.capture),
		Key: slices.Clone(o.key.Names), Columns: slices.Clone(o.columns.Names),
		DataShards: o.dataShards, ShardColumn: o.shardColumn, PositionColumn: o.positionColumn,
		TimeColumn: o.timeColumn,
		Tombstones: o.tombstones.Duration, Retain: o.retain.Retention, AcceptUntriggered: o.acceptUntriggered,
		AcceptTriggers: o.acceptTriggers, Adopt: o.adopt, AdoptSequence: o.adoptSequence,
		AdoptCursors: o.adoptCursors}, nil
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
	before, err := s.Feed(ctx, o.name)
	if err != nil && !errors.Is(err, rowfeed.UnknownFeed) {
		return err
	}
	complete := err == nil && before.State() == "active"
	// Rows that keep their positions are not recorded: their keys are looked at for shards.
	kept := o.adopt || err == nil && before.State() == "sharding"
	var rows, keys int64
	told := &rows
	doing, what, done := "recording rows of "+o.table, "row", "recorded"
	if kept {
		told, doing, what, done = &keys, "giving keys their shards", "key", "given their shards"
	}
	bar := a.NewProgress(doing, -1)
	f, err := s.AddFeed(ctx, spec, func(n int64) { *told = n; bar.Set(n) })
	bar.Done()
	if err != nil {
		if *told > 0 {
			fmt.Fprintf(a.Stderr, "rowfeed: %s %s before it broke off; the same line goes on from there\n",
				cli.Plural(*told, what), done)
		}
		return err
	}
	info, err := f.Info(ctx)
	if err != nil {
		return err
	}
	if o.json {
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
	if info.ShardIDs != nil { // each is a feed by itself
		text += ", mode " + info.Mode
		by = cli.Plural(rows, "row") + " placed behind the head by this call"
	}
	if info.PositionColumn != "" { // writers give positions: nothing was there to do
		return a.PrintLine("%s", text)
	}
	text += ", capture " + string(f.Capture())
	if info.DataShards > 1 {
		text += ", " + shardsText(info)
	}
	switch {
	case kept && info.DataShards > 1:
		by = "keys given their shards"
	case kept:
		by = "positions kept"
	}
	return a.PrintLine("%s, %s", text, by)
}

// printSQL prints the script for a database that is not at hand.
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
	return PrintScript(a, d, steps)
}
