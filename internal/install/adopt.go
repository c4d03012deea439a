package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// adopted is what a new feed takes over from an in-house feed. It is empty unless the spec asks for it.
type adopted struct {
	first   int64 // the initial value of the sequence
	cursors []formerCursor
	others  []string // one text for each other feed that the table of cursors has rows of
}

type formerCursor struct {
	consumer          string
	position          int64 // as stored in the in-house table
	shard, shardCount int64 // 0 of 1 if the table has no such columns
	// incomplete says which shards have no row, so the consumer begins at 0. It is empty if all have one.
	incomplete string
	at         feedtype.CursorState
}

// adopt reads what a new feed is to take over, and refuses values that rowfeed cannot use.
func adopt(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord, spec feedtype.FeedSpec) (
	a adopted, err error,
) {
	if a.first, err = firstPosition(ctx, db, q, r, spec.AdoptSequence); err != nil {
		return a, err
	}
	if r.Dropped.Continues() { // the row with the highest position may have been written since
		a.first = max(a.first, r.Dropped.Head)
	}
	former, err := formerCursors(ctx, db, q, r, spec.AdoptCursors)
	if err != nil {
		return a, err
	}
	a.cursors = former.all
	if err := former.refuse(a.first); err != nil {
		return a, err
	}
	a.others, err = former.others(ctx, db, q, r.Name)
	return a, err
}

// maxAdopted is the highest position that a feed continues from: half of all positions are left.
const maxAdopted = math.MaxInt64 / 2

// firstPosition returns the initial value of a feed's sequence: 0, or with Adopt the highest position that a row has
// or that the former sequence has given.
func firstPosition(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord, sequence string) (
	int64, error,
) {
	if !r.Adopt {
		return 0, nil
	}
	d, feed := db.Dialect, r.Feed(db.Names)
	refuse := func(format string, args ...any) (int64, error) {
		return 0, tableError(feedtype.Refused, r.Source,
			"set such positions to NULL, for the publisher to give new ones", format, args...)
	}
	var lowest, highest, twice *int64
	err := dialect.One(ctx, q, d.Syntax, statements.For(d.Syntax, feed, "bounds_of_positions"), nil, &lowest, &highest)
	if err != nil {
		return 0, err
	}
	if highest == nil {
		highest, lowest = new(int64), new(int64)
		*lowest = 1
	}
	switch {
	case *lowest < 1:
		return refuse("%d in column %s is not a position: positions begin at 1", *lowest, dialect.PositionColumn)
	case *highest > maxAdopted:
		return refuse("position %d in column %s leaves too few higher ones for later changes; the highest that can "+
			"be adopted is %d", *highest, dialect.PositionColumn, int64(maxAdopted))
	}
	err = dialect.One(ctx, q, d.Syntax, statements.For(d.Syntax, feed, "shared_position"), nil, &twice)
	switch {
	case err == nil:
		return refuse("position %d was given to several rows", *twice)
	case !errors.Is(err, store.ErrNoRows):
		return 0, err
	case sequence == "":
		return *highest, nil
	}
	former, err := formerSequence(ctx, db, q, r.Name, sequence)
	if err == nil {
		err = cmp.Or(refuseSharedName(ctx, db, q, r), refuseHighSequence(sequence, former))
	}
	if err == nil && r.PublishedElsewhere {
		return former, refuseAboveElsewhere(r, *highest, former)
	}
	if table, _, failed := catalog.SequenceRow(r.Name, sequence); failed == nil && !db.ownSequences(table) {
		r.FormerValue = &former
	}
	return max(*highest, former), err
}

// refuseHighSequence refuses a former sequence that leaves too few positions.
func refuseHighSequence(from string, value int64) error {
	if value <= maxAdopted {
		return nil
	}
	return &feedtype.Error{Code: feedtype.Refused, Object: "sequence " + from,
		Cause: fmt.Sprintf("its value %d leaves too few positions; the highest that can be adopted is %d", value,
			int64(maxAdopted)),
		Next: "set it to the highest feed_sync_id of the table's rows; if that is too high as well, set " +
			"feed_sync_id to NULL in all rows, which then get new positions"}
}

// formerSequence reads the value of an in-house sequences table. TABLE means its row with the feed's name, TABLE:NAME
// the row with that name.
func formerSequence(ctx context.Context, db *Database, q dialect.Querier, feed, from string) (int64, error) {
	table, name, err := catalog.SequenceRow(feed, from)
	if err != nil {
		return 0, err
	}
	object := fmt.Sprintf("table %q", table.String())
	var held any
	err = db.One(ctx, q, statements, "former_sequence",
		dialect.Args{"table": dialect.SQL(dialect.Qualified(db.Dialect.Syntax, table)), "name": name}, &held)
	value, ok := integer(held)
	switch {
	case errors.Is(err, store.ErrNoRows):
		return 0, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: object,
			Cause:  fmt.Sprintf("it has no row with name %q", name),
			Next:   "name the row with --adopt-sequence TABLE:NAME",
		}
	case err != nil:
		return 0, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: object,
			Cause:  "its columns name and value cannot be read",
			Err:    err,
			Next:   "--adopt-sequence takes a table of sequences with these columns",
		}
	case !ok:
		return 0, tableError(feedtype.Refused, table, "correct it: a sequence is at an integer",
			"column value of its row %q is %s", name, shown(held))
	case value < 0 || value == math.MaxInt64:
		return 0, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: object,
			Cause:  fmt.Sprintf("its value %d is negative, or the highest possible number", value),
			Next:   "set it to the highest feed_sync_id of the table's rows, or to 0 if there is none",
		}
	}
	return value, nil
}

// formerValue is formerSequence for a sequence that may be gone. It looks for the table first, because a statement that
// fails would end the transaction on some databases.
func formerValue(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord) (value int64, gone bool,
	err error) {
	name, _, err := catalog.SequenceRow(r.Name, r.AdoptSequence)
	if err != nil {
		return 0, false, err
	}
	table, err := db.Dialect.Describe(ctx, q, name)
	if db.Dialect.Classify(err) == dialect.ClassUndefined {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	if table.FindColumn("name") == nil || table.FindColumn("value") == nil {
		return 0, true, nil
	}
	value, err = formerSequence(ctx, db, q, r.Name, r.AdoptSequence)
	if errors.Is(err, feedtype.Refused) {
		return 0, true, nil
	}
	return value, false, err
}

// formerTable is an in-house table of cursors. Column name has the consumer, column value or position the last position
// that it has consumed.
type formerTable struct {
	name     feedtype.TableName
	position string // the column
	feeds    bool   // it has a column feed, so only rows with this feed's name count
	rows     []formerCursor
	all      []formerCursor // of rows, one for each consumer
}

// formerCursors reads an in-house table of cursors. Without a name it returns an empty one.
func formerCursors(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord, from string) (
	*formerTable, error) {
	if from == "" {
		return &formerTable{}, nil
	}
	name, err := catalog.ParseTable(from)
	if err != nil {
		return nil, err
	}
	table, err := catalog.DescribeTable(ctx, db.Store, q, name)
	if err != nil {
		return nil, err
	}
	f := &formerTable{name: table.Name, position: "value", feeds: table.Column("feed") != nil}
	if table.Column(f.position) == nil {
		f.position = "position"
	}
	if table.Column("name") == nil || table.Column(f.position) == nil {
		return nil, tableError(feedtype.Refused, table.Name,
			"--adopt-cursors takes a table of cursors with these columns",
			"it has no column name, or neither value nor position")
	}
	statement, args := "former_cursors", f.args(db)
	number := func(name string) bool {
		c := table.Column(name)
		return c != nil && (c.Kind == feedtype.Integer || c.Kind == feedtype.Dynamic)
	}
	args["shard"], args["shard_count"] = dialect.SQL("0"), dialect.SQL("1")
	if number("shard") && number("shard_count") {
		args["shard"] = dialect.SQL(db.Dialect.Quote("shard"))
		args["shard_count"] = dialect.SQL(db.Dialect.Quote("shard_count"))
	}
	if f.feeds {
		statement, args["feed"] = "former_cursors_of_feed", r.Name
	}
	f.rows, err = store.All(ctx, db.Store, q, statements, statement, args, func(rows dialect.Rows) (formerCursor,
		error) {
		c := formerCursor{at: feedtype.CursorState{Generation: r.Generation}}
		var consumer, position any
		if err := rows.Scan(&consumer, &position, &c.shard, &c.shardCount); err != nil {
			return c, err
		}
		if consumer == nil {
			return c, tableError(feedtype.Refused, f.name, "give the row a name, or delete it",
				"a row with %s %s has NULL as its name", f.position, shown(position))
		}
		c.consumer = text(consumer)
		var ok bool
		if c.position, ok = integer(position); !ok && position != nil {
			return c, tableError(feedtype.Refused, f.name, "correct it: a position is an integer",
				"column %s of its row %q is %s", f.position, c.consumer, shown(position))
		}
		c.at.Position = feedtype.Numbered(c.position)
		return c, nil
	})
	f.all = lowestCursors(f.rows)
	return f, err
}

// others names the other feeds that the table has rows of.
func (f *formerTable) others(ctx context.Context, db *Database, q dialect.Querier, feed string) ([]string, error) {
	if !f.feeds {
		return nil, nil
	}
	args := dialect.Args{"table": dialect.SQL(dialect.Qualified(db.Dialect.Syntax, f.name)), "feed": feed}
	return store.All(ctx, db.Store, q, statements, "former_cursors_of_others", args,
		func(rows dialect.Rows) (string, error) {
			var name *string
			var n int64
			err := rows.Scan(&name, &n)
			if name == nil {
				return fmt.Sprintf("no feed (%d)", n), err
			}
			return fmt.Sprintf("feed %q (%d)", *name, n), err
		})
}

// lowestCursors returns one cursor for each consumer. A consumer of a sharded feed has a row for each shard. The
// former shards are not rowfeed's parts, so the consumer continues from the lowest of its cursors. A shard without a
// row has not stored a cursor yet, so that is the beginning.
func lowestCursors(rows []formerCursor) (all []formerCursor) {
	shards, counts := map[string][]int64{}, map[string]int64{}
	for _, c := range rows {
		shards[c.consumer] = append(shards[c.consumer], c.shard)
		counts[c.consumer] = max(counts[c.consumer], c.shardCount)
	}
	for _, c := range rows {
		i := slices.IndexFunc(all, func(other formerCursor) bool { return other.consumer == c.consumer })
		switch {
		case i < 0:
			all = append(all, c)
		case c.position < all[i].position:
			all[i] = c
		}
	}
	for i, c := range all {
		own := shards[c.consumer]
		slices.Sort(own)
		if n := len(slices.Compact(own)); int64(n) < counts[c.consumer] {
			all[i].incomplete = fmt.Sprintf("rows of %d of its %d shards", n, counts[c.consumer])
			all[i].position, all[i].at.Position = 0, feedtype.Position{}
		}
	}
	return all
}

func (f *formerTable) args(db *Database) dialect.Args {
	return dialect.Args{"position": dialect.SQL(db.Dialect.Quote(f.position)),
		"table": dialect.SQL(dialect.Qualified(db.Dialect.Syntax, f.name))}
}

// refuse refuses cursors that the feed cannot take over.
func (f *formerTable) refuse(head int64) error {
	for _, c := range f.rows {
		switch {
		case !feedtype.ValidConsumer(c.consumer):
			return tableError(feedtype.Refused, f.name, "rename it", "%q cannot be a consumer's name", c.consumer)
		case c.position < 0 || c.position > head:
			return tableError(feedtype.Refused, f.name,
				"correct it, or name the former sequence with --adopt-sequence",
				"the cursor %d of %q is not between 0 and the feed's head %d", c.position, c.consumer, head)
		}
	}
	return nil
}

// saveCursors stores former cursors as cursors of consumers. It does not change a cursor that exists.
func saveCursors(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	cursors []formerCursor) error {
	for _, c := range cursors {
		value := c.at.Cursor()
		_, err := db.Exec(ctx, q, statements, "insert_cursor", dialect.Args{"consumer": c.consumer, "feed": r.Name,
			"value": string(value), "generation": value.Generation()})
		if err != nil {
			return err
		}
	}
	return nil
}

// Cursors returns how many consumers of the feed the table has that it adopted, and the other feeds that this table has
// rows of. told has one sentence for each cursor of rowfeed's table, or of the adopted table, from which the feed does
// not continue. The sentence names the command that changes this.
func Cursors(ctx context.Context, st *store.Store, r *catalog.FeedRecord) (consumers int, others, told []string,
	err error) {
	db := &Database{Store: st}
	q := db.On()
	stored, err := storedCursors(ctx, db, q, r.Name)
	if err != nil {
		return 0, nil, nil, err
	}
	table, err := formerCursors(ctx, db, q, r, r.AdoptCursors)
	if err != nil {
		return 0, nil, nil, err
	}
	if others, err = table.others(ctx, db, q, r.Name); err != nil {
		return 0, nil, nil, err
	}
	for i, c := range stored {
		if i > 0 && stored[i-1].consumer == c.consumer {
			continue
		}
		var former *formerCursor
		for j := range table.all {
			if table.all[j].consumer == c.consumer {
				former = &table.all[j]
			}
		}
		at, err := c.value.State()
		refused := err == nil && !at.Start && c.generation != r.Generation
		seek := ""
		if former != nil {
			seek = fmt.Sprintf("`rowfeed consumer seek %s --feed %s --to %s` takes over position %d of table %s",
				c.consumer, r.Name, cursorText(former.at.Cursor()), former.position, table.name)
		}
		switch {
		case former != nil && former.incomplete != "" && err == nil && at.Start:
			told = append(told, fmt.Sprintf("consumer %q begins at 0, because table %s has only %s: a shard without a "+
				"row has not stored a cursor yet", c.consumer, table.name, former.incomplete))
		case refused && former != nil:
			told = append(told, fmt.Sprintf("consumer %q keeps its cursor of generation %d, which the feed refuses; %s",
				c.consumer, c.generation, seek))
		case refused:
			told = append(told, fmt.Sprintf("consumer %q keeps its cursor of generation %d, which the feed refuses; "+
				"`rowfeed consumer reset %s --feed %s` lets it start at the beginning", c.consumer, c.generation,
				c.consumer, r.Name))
		case former != nil && err == nil && c.shardCount == 1 && former.position > at.Position.Number():
			told = append(told, fmt.Sprintf("consumer %q keeps its cursor at position %d; %s", c.consumer,
				at.Position.Number(), seek))
		}
	}
	return len(table.all), others, told, nil
}

// cursorText is a cursor as an argument of a command: the beginning is not an empty word.
func cursorText(c feedtype.Cursor) string {
	if c == feedtype.Beginning {
		return "0"
	}
	return string(c)
}

// integer is the value of a column of the team's, which may have any type. A driver gives an integer as a number or as
// text.
func integer(v any) (int64, bool) {
	if n, ok := v.(int64); ok {
		return n, true
	}
	n, err := strconv.ParseInt(text(v), 10, 64)
	return n, err == nil
}

func text(v any) string {
	if raw, ok := v.([]byte); ok {
		return string(raw)
	}
	return fmt.Sprint(v)
}

// shown is a value in a message.
func shown(v any) string {
	if v == nil {
		return "NULL"
	}
	return strconv.Quote(text(v))
}
