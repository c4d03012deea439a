package dialect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// PageParts are the parts of a page's statement in which databases differ.
type PageParts struct {
	// Head returns an expression for the highest position to show. It must not be newer than the snapshot in
	// which the page is read. For feeds with ULIDs, nil means the greatest ULID in the snapshot of the
	// statement.
	Head func(b *Builder) string
	// Signature is an expression that identifies the source table's columns in the snapshot of the page.
	Signature string
	// Indexed is a condition that the unique index of shard and ULID still is the one that was described. It is
	// empty if the statement names the index, and so fails without it.
	Indexed string
	// Identity is an expression for [Publish].Identity, NULL if that is unknown.
	Identity string
	// Lateral finds each row by its key in a subquery of its own. It is for databases whose planner could
	// otherwise begin the join with the source table.
	Lateral bool
	// Hint follows the alias of the source table.
	Hint string
	// ByShard is [Moving].ByShard.
	ByShard func(among Seqs) (hint, condition string)
	// CutBranches is for databases that read each branch of a UNION to its end before they merge the branches.
	// A page of several buckets then reads only so many rows of each. See [PageRows.EndAtCut].
	CutBranches bool
	// BucketHint follows the table of positions if it is read by bucket.
	BucketHint string
	// Series returns a table of the numbers from one parameter to another, for databases that read buckets by a
	// lateral join with it. Then, too, only so many rows of each bucket are read.
	Series func(first, last string) string
}

// PageSQL returns the statement that reads a page. It always answers at least one row. So generation,
// tombstones_below and head come from the page's snapshot even if the page is empty. The narrow positions are
// cut to the limit first, in the order of their index, and only these keys are looked up in the source. So the
// cost of a page does not depend on the size of the table.
func PageSQL(s Spelling, f *Feed, q PageQuery, p PageParts) (string, []any) {
	if f.ULIDs != nil {
		return ulidPageSQL(s, f, q, p)
	}
	b := NewBuilder(s)
	var t strings.Builder
	t.WriteString("SELECT f.generation, f.tombstones_below, s.value, COALESCE(s.term, 0), " +
		q.signature(s, b, f, p.Signature) + ",\n")
	t.WriteString("  p.feed_sync_id, p.shard, p.deleted, p.hidden, p.published_at,\n")
	// Key columns are never NULL, so NULL means that the join has found no row.
	t.WriteString("  CASE WHEN " + Ref(s, "t", f.Key[0].Name) + " IS NULL THEN 0 ELSE 1 END")
	for _, c := range f.Key {
		// the spelling of rowfeed's table, which may differ from that of the row: see [Column].Exact
		t.WriteString(",\n  " + s.Value(c, Ref(s, "p", c.Stored)))
	}
	for _, c := range f.Columns {
		t.WriteString(",\n  " + s.Value(c, Ref(s, "t", c.Name)))
	}
	t.WriteString("\nFROM " + Qualified(s, f.Names.Table("feeds")) + " f")
	t.WriteString("\nJOIN " + Qualified(s, f.Names.Table("sequences")) + " s ON s.name = f.name")
	t.WriteString("\nLEFT JOIN (" + places(s, b, f, q, p) + ") p ON 1 = 1")
	if p.Lateral {
		t.WriteString("\nLEFT JOIN LATERAL (SELECT * FROM " + Qualified(s, f.Source) + " t WHERE " +
			SourceJoin(s, f, "t", "p") + " OFFSET 0) t ON true")
	} else {
		t.WriteString("\nLEFT JOIN " + Qualified(s, f.Source) + " t" + p.Hint + " ON " + SourceJoin(s, f, "t", "p"))
	}
	t.WriteString("\nWHERE f.name = " + b.Arg(f.Name))
	// The statement has a LIMIT because some sessions have a default limit, which would cut the page. Without
	// ORDER BY the limit is greater than the number of rows, which places has cut.
	if q.Sorted {
		t.WriteString("\nORDER BY p.feed_sync_id LIMIT " + b.Arg(q.Limit))
	} else {
		t.WriteString("\nLIMIT " + b.Arg(q.Limit+1))
	}
	return t.String(), b.Args()
}

// SequenceHead returns the function of [PageParts].Head that reads the head in the statement's own snapshot.
func SequenceHead(s Spelling, f *Feed) func(*Builder) string {
	return func(b *Builder) string {
		return "(SELECT value FROM " + Qualified(s, f.Names.Table("sequences")) + " WHERE name = " + b.Arg(f.Name) + ")"
	}
}

// signature returns the expression for the page's signature. For a page of a part, it is empty if parts are not
// served in the feed's state, or if the number of data shards is another. What the caller knows of the feed may
// be older, or come from another server, in the same generation.
func (q PageQuery) signature(s Spelling, b *Builder, f *Feed, columns string) string {
	if len(q.Unserved) == 0 {
		return columns
	}
	states := make([]string, len(q.Unserved))
	for i, state := range q.Unserved {
		states[i] = s.Literal(state)
	}
	return "CASE WHEN f.state IN (" + strings.Join(states, ", ") + ") OR f.data_shards <> " + b.Arg(f.DataShards) +
		" THEN '' ELSE " + columns + " END"
}

// places returns a query for the keys and positions of a page, cut to the limit.
func places(s Spelling, b *Builder, f *Feed, q PageQuery, p PageParts) string {
	above := func(ref string) string {
		return ref + " > " + b.Arg(q.After.Number()) + " AND " + ref + " <= " + p.Head(b)
	}
	columns := strings.Join(StoredRefs(s, f, ""), ", ") + ", feed_sync_id, shard, deleted, hidden, published_at"
	if q.To > 0 && !f.InRows() {
		return partOfPlaces(s, b, f, q, p, columns)
	}
	own := "SELECT " + columns +
		"\n  FROM " + Qualified(s, f.Positions()) +
		"\n  WHERE " + above("feed_sync_id") + q.within(b, "shard") + q.unmarked(b) +
		"\n  ORDER BY feed_sync_id LIMIT " + b.Arg(q.Limit)
	if !f.InRows() {
		return own
	}
	// The position of a key is in its row, unless the key is hidden or was republished since. Both parts are
	// read in the order of their own index, and cut.
	keys := make([]string, len(f.Key))
	for i, c := range f.Key {
		keys[i] = Ref(s, "r", c.Name) + " AS " + s.Quote(c.Stored)
	}
	rows := "SELECT " + strings.Join(keys, ", ") + ", r.feed_sync_id AS feed_sync_id, COALESCE(r.shard, 0) AS shard, " +
		"0 AS deleted, 0 AS hidden, 0 AS published_at" +
		"\n  FROM " + Qualified(s, f.Source) + " r" +
		"\n  WHERE " + above("r.feed_sync_id") + q.within(b, "COALESCE(r.shard, 0)") +
		"\n    AND NOT EXISTS (SELECT 1 FROM " + Qualified(s, f.Positions()) + " h WHERE " +
		SourceJoin(s, f, "r", "h") +
		" AND (h.hidden = 1 OR h.feed_sync_id > r.feed_sync_id))" +
		"\n  ORDER BY r.feed_sync_id LIMIT " + b.Arg(q.Limit)
	return "SELECT * FROM (SELECT * FROM (" + own + ") own\n  UNION ALL SELECT * FROM (" + rows +
		") placed) both_parts" +
		"\n  ORDER BY feed_sync_id LIMIT " + b.Arg(q.Limit)
}

// placing scans those columns of a page's statement that differ between feeds with a sequence and feeds with
// ULIDs.
type placing interface {
	// head and row return the destinations of these columns.
	head() []any
	row() []any
	// place sets the page's head, and returns the row's position. It is false if the page has no row.
	place(page *PageRows) (PageRow, bool, error)
}

// numbered scans positions of a sequence.
type numbered struct {
	below, value, term                        scanNumber
	position, shard, deleted, hidden, present scanNumber
	published                                 scanNumber
}

func (n *numbered) head() []any { return []any{&n.below, &n.value, &n.term} }

func (n *numbered) row() []any {
	return []any{&n.position, &n.shard, &n.deleted, &n.hidden, &n.published, &n.present}
}

func (n *numbered) place(page *PageRows) (PageRow, bool, error) {
	page.TombstonesBelow, page.Head, page.Given =
		feedtype.Numbered(n.below.n), feedtype.Numbered(n.value.n), feedtype.Numbered(n.value.n)
	page.Term = feedtype.Term(n.term.n)
	return PageRow{Position: feedtype.Numbered(n.position.n), Shard: int(n.shard.n),
		Deleted: n.deleted.n == 1, Hidden: n.hidden.n == 1, Present: n.present.n == 1,
		PublishedAt: n.published.n}, n.position.valid, nil
}

// ReadInOrder reads a page. The database finds the rows one by one, in the order of their positions, but does
// not know that the joined rows have this order. With ORDER BY it would sort whole rows. So the first statement
// has none. If its rows come in another order, or are too large to be read to the end, the page is read again,
// sorted.
func ReadInOrder(ctx context.Context, on Querier, s Spelling, f *Feed, q PageQuery, p PageParts) (*PageRows, error) {
	q.Sorted = q.Sorted || f.ULIDs != nil
	for {
		query, args := PageSQL(s, f, q, p)
		page, err := scanPage(ctx, on, f, q, query, args)
		if q.Sorted || err == nil && !page.Truncated || err != nil && !errors.Is(err, errDisorder) {
			return page, err
		}
		q.Sorted = true
	}
}

// errDisorder means that the rows of an unsorted page were not in the order of their positions.
var errDisorder = errors.New("a page has come in another order than that of its positions")

// PageColumns returns the number of columns in the statements of a feed's pages.
func PageColumns(f *Feed) int {
	return len(pageDest(&scanNumber{}, placingOf(f, PageQuery{}), &scanText{}, cellsOf(f)))
}

// pageDest returns the destinations of the columns of a page's statement.
func pageDest(generation *scanNumber, places placing, signature *scanText, cells []cell) []any {
	dest := append([]any{generation}, places.head()...)
	dest = append(append(dest, signature), places.row()...)
	for i := range cells {
		dest = append(dest, &cells[i])
	}
	return dest
}

func placingOf(f *Feed, q PageQuery) placing {
	if f.ULIDs != nil {
		return &ulided{shard: q.Shard, outbox: f.Outbox}
	}
	return &numbered{}
}

// scanPage runs a statement of PageSQL and scans its rows, until their values are larger than q.MaxBytes.
func scanPage(ctx context.Context, on Querier, f *Feed, q PageQuery, query string, args []any) (*PageRows, error) {
	rows, err := on.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	page := &PageRows{}
	places := placingOf(f, q)
	var generation scanNumber
	var signature scanText
	cells := cellsOf(f)
	dest := pageDest(&generation, places, &signature, cells)
	var bytes int
	var free []any // space for the values of the next rows
	found := false
	for rows.Next() {
		found = true
		if bytes > q.MaxBytes {
			page.Truncated = true
			break
		}
		if len(free) == 0 {
			free = make([]any, min(len(page.Rows)+1, rowsTogether)*len(cells))
		}
		values := free[:len(cells):len(cells)]
		for i := range cells {
			cells[i].to = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		page.Generation, page.Signature = generation.n, signature.text
		row, ok, err := places.place(page)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue // the page is empty
		}
		if n := len(page.Rows); !q.Sorted && (n == q.Limit || n > 0 && page.Rows[n-1].Position.Above(row.Position)) {
			return nil, errDisorder
		}
		free = free[len(cells):]
		for _, v := range values {
			bytes += size(v)
		}
		row.Key, row.Values = values[:len(f.Key):len(f.Key)], values[len(f.Key):]
		page.Rows = append(page.Rows, row)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("feed %q has no record: %w", f.Name, ErrNoTable)
	}
	return page, rows.Close()
}

// size returns roughly how many bytes of memory a value takes.
func size(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []byte:
		return len(v)
	}
	return 8
}
