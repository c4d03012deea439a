package install

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// adopted is what a new feed takes over from an in-house feed. It is empty unless the spec asks for it.
type adopted struct {
	first   int64 // the initial value of the sequence
	cursors []formerCursor
}

type formerCursor struct {
	consumer string
	position int64 // as stored in the in-house table
	at       feedtype.CursorState
}

// adopt reads what a new feed is to take over, and refuses values that rowfeed cannot use.
func adopt(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord, spec feedtype.FeedSpec) (
	a adopted, err error,
) {
	if a.first, err = firstPosition(ctx, db, q, r, spec.AdoptSequence); err == nil {
		a.cursors, err = formerCursors(ctx, db, q, r, spec.AdoptCursors, a.first)
	}
	return a, err
}

// firstPosition returns the initial value of a feed's sequence: 0, or with Adopt the highest position that a row has
// or that the former sequence has given.
func firstPosition(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord, sequence string) (
	int64, error,
) {
	if !r.Adopt {
		return 0, nil
	}
	source := dialect.Qualified(db.Dialect, r.Source)
	refuse := func(format string, args ...any) (int64, error) {
		return 0, tableError(feedtype.Refused, r.Source,
			"set such positions to NULL, for the publisher to give new ones", format, args...)
	}
	var lowest, highest, twice *int64
	bounds := "SELECT min(feed_sync_id), max(feed_sync_id) FROM " + source
	if err := dialect.QueryRow(ctx, q, bounds, nil, &lowest, &highest); err != nil {
		return 0, err
	}
	if highest == nil {
		highest, lowest = new(int64), new(int64)
		*lowest = 1
	}
	switch {
	case *lowest < 1:
		return refuse("%d in column %s is not a position: positions begin at 1", *lowest, dialect.PositionColumn)
	case *highest == math.MaxInt64:
		return refuse("position %d in column %s leaves no higher one for later changes",
			*highest, dialect.PositionColumn)
	}
	duplicate := "SELECT feed_sync_id FROM " + source + " WHERE feed_sync_id IS NOT NULL GROUP BY feed_sync_id" +
		" HAVING count(*) > 1 ORDER BY feed_sync_id LIMIT 1"
	err := dialect.QueryRow(ctx, q, duplicate, nil, &twice)
	switch {
	case err == nil:
		return refuse("position %d was given to several rows", *twice)
	case !errors.Is(err, store.ErrNoRows):
		return 0, err
	case sequence == "":
		return *highest, nil
	}
	former, err := formerSequence(ctx, db, q, r.Name, sequence)
	return max(*highest, former), err
}

// formerSequence reads the value of an in-house sequences table. TABLE means its row with the feed's name, TABLE:NAME
// the row with that name.
func formerSequence(ctx context.Context, db *Database, q dialect.Querier, feed, from string) (int64, error) {
	text, name, named := strings.Cut(from, ":")
	if !named {
		name = feed
	}
	table, err := parseTable(text)
	if err != nil {
		return 0, err
	}
	object := fmt.Sprintf("table %q", table.String())
	var value int64
	b := dialect.NewBuilder(db.Dialect)
	err = dialect.QueryRow(ctx, q, "SELECT value FROM "+dialect.Qualified(db.Dialect, table)+" WHERE name = "+
		b.Arg(name), b.Args(), &value)
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
	case value < 0 || value == math.MaxInt64:
		return 0, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: object,
			Cause:  fmt.Sprintf("its value %d leaves no positions", value),
		}
	}
	return value, nil
}

// formerCursors reads an in-house table of cursors. Column name has the consumer, column value or position the last
// position that it has consumed. If the table has a column feed, only rows with this feed's name are read.
func formerCursors(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord, from string,
	head int64) ([]formerCursor, error) {
	if from == "" {
		return nil, nil
	}
	name, err := parseTable(from)
	if err != nil {
		return nil, err
	}
	table, err := catalog.DescribeTable(ctx, db.Store, q, name)
	if err != nil {
		return nil, err
	}
	refuse := func(next, format string, args ...any) ([]formerCursor, error) {
		return nil, tableError(feedtype.Refused, table.Name, next, format, args...)
	}
	value := "value"
	if table.Column(value) == nil {
		value = "position"
	}
	if table.Column("name") == nil || table.Column(value) == nil {
		return refuse("--adopt-cursors takes a table of cursors with these columns",
			"it has no column name, or neither value nor position")
	}
	b := dialect.NewBuilder(db.Dialect)
	query := "SELECT name, " + db.Dialect.Quote(value) + " FROM " + dialect.Qualified(db.Dialect, table.Name)
	if table.Column("feed") != nil {
		query += " WHERE feed = " + b.Arg(r.Name)
	}
	cursors, err := dialect.QueryAll(ctx, q, query+" ORDER BY name", b.Args(), func(rows dialect.Rows) (formerCursor,
		error) {
		c := formerCursor{at: feedtype.CursorState{Generation: r.Generation}}
		var position *int64
		err := rows.Scan(&c.consumer, &position)
		if position != nil {
			c.position = *position
		}
		c.at.Position = feedtype.Numbered(c.position)
		return c, err
	})
	if err != nil {
		return nil, err
	}
	for _, c := range cursors {
		switch {
		case !feedtype.ValidConsumer(c.consumer):
			return refuse("rename it", "%q cannot be a consumer's name", c.consumer)
		case c.position < 0 || c.position > head:
			return refuse("correct it, or name the former sequence with --adopt-sequence",
				"the cursor %d of %q is not between 0 and the feed's head %d", c.position, c.consumer, head)
		}
	}
	return cursors, nil
}

// saveCursors stores former cursors as cursors of consumers. It does not change a cursor that exists.
func saveCursors(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
	cursors []formerCursor) error {
	for _, c := range cursors {
		value := c.at.Cursor()
		b := dialect.NewBuilder(db.Dialect)
		values := []string{b.Arg(c.consumer), b.Arg(r.Name), "0", "1", b.Arg(string(value)), b.Arg(value.Generation()),
			"0", "0", "0", "0", db.Dialect.Now()}
		_, err := q.Exec(ctx, db.Dialect.InsertNew(db.Table("cursors"),
			[]string{"consumer", "feed", "shard", "shard_count", "value", "generation", "epoch", "version", "paused",
				"aside", "updated_at"},
			values, []string{"consumer", "feed", "shard"}), b.Args()...)
		if err != nil {
			return err
		}
	}
	return nil
}
