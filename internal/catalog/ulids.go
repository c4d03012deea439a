package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Problem is why a table cannot hold ULIDs, and the next step.
type Problem struct{ What, Next string }

// UlidColumns returns the columns that hold a row's ULID and shard, and their index, or why a table lacks them.
func UlidColumns(d *dialect.Dialect, table *dialect.Table, position, shard string) (*dialect.ULIDColumns, []Problem) {
	var problems []Problem
	problem := func(next, format string, args ...any) {
		problems = append(problems, Problem{fmt.Sprintf(format, args...), next})
	}
	p, s := table.FindColumn(position), table.FindColumn(shard)
	switch {
	case p == nil:
		problem("set --position-column to the column with the ULID of each row", "it has no column %q", position)
	case s == nil:
		problem("set --shard-column to the integer column with the shard of each row", "it has no column %q", shard)
	case p.Nullable:
		problem("declare it NOT NULL", "position column %q may be NULL", p.Name)
	case p.Generated:
		problem("make it a plain column: writers insert the ULIDs that rowfeed gives them",
			"position column %q is generated", p.Name)
	case s.Nullable:
		problem("declare it NOT NULL", "shard column %q may be NULL", s.Name)
	case !HoldsIntegers(s):
		problem("make it an integer", "shard column %q is %s", s.Name, s.Type)
	case ShardProblem(d, s, false) != nil:
		problems = append(problems, *ShardProblem(d, s, false))
	case d.ULIDProblem(p) != "":
		problem("see docs/ULIDS.md for the types that hold a ULID",
			"position column %q %s", p.Name, d.ULIDProblem(p))
	}
	if len(problems) > 0 {
		return nil, problems
	}
	columns := &dialect.ULIDColumns{Position: *p, Shard: *s}
	fits := func(ix dialect.Index) bool {
		names, ok := ix.Names()
		return ok && !ix.Partial && slices.Equal(names, []string{s.Name, p.Name})
	}
	i := slices.IndexFunc(table.Unique, func(ix dialect.Index) bool { return fits(ix) && !ix.Hidden })
	if hidden := slices.IndexFunc(table.Unique, fits); i < 0 && hidden >= 0 {
		problem("make the index visible again", "its unique index %q on (%s, %s) is invisible, or ignored: "+
			"pages would read the whole table", table.Unique[hidden].Name, s.Name, p.Name)
		return nil, problems
	}
	if i < 0 {
		problem(fmt.Sprintf("run CREATE UNIQUE INDEX %s ON %s (%s, %s)", d.Quote(indexName(table.Name.Name)),
			dialect.Qualified(d.Syntax, table.Name), d.Quote(s.Name), d.Quote(p.Name)),
			"no unique index has the columns (%s, %s), in this order and no others: two rows could share a position, "+
				"and pages would read the whole table", s.Name, p.Name)
		return nil, problems
	}
	columns.Index, columns.IndexMade = table.Unique[i].Name, table.Unique[i].Made
	return columns, nil
}

// indexName is a name for the index of a table. The table's own name may have the maximum length.
func indexName(table string) string {
	for len(table) > 50 {
		_, last := utf8.DecodeLastRuneInString(table)
		table = table[:len(table)-last]
	}
	return table + "_feed"
}

// HoldsIntegers reports whether a column stores integers as integers. Other declared types of SQLite may turn them into
// texts or fractions.
func HoldsIntegers(c *dialect.Column) bool {
	return c.Kind == feedtype.Integer || c.Kind == feedtype.Dynamic && strings.Contains(strings.ToUpper(c.Type), "INT")
}

// ShardProblem is why a database cannot use an integer column for shards; nil if it can.
func ShardProblem(d *dialect.Dialect, c *dialect.Column, triggered bool) *Problem {
	problem, next := d.ShardProblem(c, triggered)
	if problem == "" {
		return nil
	}
	return &Problem{fmt.Sprintf("shard column %q %s", c.Name, problem), next}
}

// UlidsAgain returns a feed's columns as its table has them now.
func UlidsAgain(d *dialect.Dialect, table *dialect.Table, was *dialect.ULIDColumns) (*dialect.ULIDColumns, []Problem) {
	for _, name := range []string{was.Position.Name, was.Shard.Name} {
		if table.FindColumn(name) == nil {
			return nil, []Problem{{fmt.Sprintf("it has no column %q any more", name),
				"give the column its name back, or drop the feed and add it again"}}
		}
	}
	return UlidColumns(d, table, was.Position.Name, was.Shard.Name)
}

// describeULIDs updates a feed's columns: their types, and the name of their index.
func describeULIDs(d *dialect.Dialect, f *dialect.Feed, table *dialect.Table) error {
	columns, problems := UlidsAgain(d, table, f.ULIDs)
	if len(problems) > 0 {
		return &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "its table " + table.Name.String() + " has changed: " + problems[0].What,
			Next:   problems[0].Next,
		}
	}
	f.ULIDs = columns
	return nil
}

// WithoutULID is a query, from its FROM on, for the rows (t) of a feed's table that have no ULID or no shard. It is ""
// if the types of the columns allow no such row.
func WithoutULID(d *dialect.Dialect, feed *dialect.Feed) string {
	if where := noULID(d, feed, "t"); where != "" && !feed.Outbox {
		return " FROM " + dialect.Qualified(d.Syntax, feed.Source) + " t WHERE " + where
	}
	return ""
}

func noULID(d *dialect.Dialect, feed *dialect.Feed, alias string) string {
	u := feed.ULIDs
	return d.NoULID(u, dialect.Ref(d.Syntax, alias, u.Position.Name), dialect.Ref(d.Syntax, alias, u.Shard.Name))
}

// FindWithoutULID returns the next step for an error about rows without a ULID or a shard.
func FindWithoutULID(d *dialect.Dialect, feed *dialect.Feed) string {
	return "find such rows with SELECT * FROM " + dialect.Qualified(d.Syntax, feed.Source) + " WHERE " +
		noULID(d, feed, "") +
		", correct or delete them, and let a CHECK constraint refuse new ones (docs/ULIDS.md)"
}

// HoldsNoULID is the error if a page, or the lock of a shard, finds a row without a ULID.
func (f *Feed) HoldsNoULID(shard int, err error) error {
	feed := f.DialectFeed()
	return &feedtype.Error{Code: feedtype.Failed, Object: fmt.Sprintf("feed %q, shard %d", f.Name, shard), Err: err,
		Cause: fmt.Sprintf("a row of table %s holds no ULID in %q", feed.Source, feed.ULIDs.Position.Name),
		Next:  FindWithoutULID(f.Store.Dialect, feed) + "; `rowfeed check " + f.Name + "` names their keys"}
}
