package dialect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// page returns the statement of the database that fits the feed and the query: page, page_of_part, page_of_rows,
// blocking_page or outbox_page. own are arguments that only this database has.
func (q PageQuery) page(s *Syntax, f *Feed, own Args) Built {
	args := Args{"feed": f.Name, "limit": q.Limit, "more": q.Limit + 1, "mark": q.Mark.Number(), "shard": q.Shard,
		"from": q.From, "to": q.To, "data_shards": f.DataShards, "unserved": q.unserved(s)}
	maps.Copy(args, own)
	with := func(name string) Built { return s.Statement(f, name).WithSome(args) }
	args["signature"] = with(q.signature(f))
	if f.ULIDs != nil {
		args["after"] = f.ULIDs.Param(s, q.After)
		if !f.Outbox {
			return with("blocking_page")
		}
		args["waiting"], _ = q.Waiting(s, f)
		return with("outbox_page")
	}
	args["after"], args["order"] = q.After.Number(), with("in_any_order")
	if q.Sorted {
		args["order"] = with("in_order")
	}
	args["of_part"], args["row_of_part"] = SQL(""), SQL("")
	if q.To > 0 && !f.ReadsBuckets() {
		args["of_part"], args["row_of_part"] = with("of_part"), with("row_of_part")
	}
	switch {
	case f.ReadsRows():
		return with("page_of_rows")
	case q.To == 0 || !f.ReadsBuckets():
		return with("page")
	}
	first, n, share := q.buckets(f)
	args["first"], args["last"], args["share"] = first, first+n-1, share
	if s.Statement(f, "page_of_part").Has("buckets") {
		name := "bucket"
		if n > 1 {
			name = "one_of_buckets"
		}
		var scans []Built
		for i := range n {
			args["bucket"] = first + i
			scans = append(scans, with(name))
		}
		args["buckets"] = Joined("\n  UNION ALL ", scans)
	}
	return with("page_of_part")
}

// signature returns the name of the expression for the page's signature, which is empty if the page must not be shown.
func (q PageQuery) signature(f *Feed) string {
	switch {
	case f.ULIDs != nil && q.AnyDatabase:
		return "signature_anywhere"
	case f.ULIDs != nil:
		return "signature_here"
	case len(q.Unserved) > 0:
		return "signature_if_served"
	}
	return "signature"
}

// unserved is a list of literals.
func (q PageQuery) unserved(s *Syntax) SQL {
	if len(q.Unserved) == 0 {
		return "NULL"
	}
	states := make([]string, len(q.Unserved))
	for i, state := range q.Unserved {
		states[i] = s.Literal(state)
	}
	return SQL(strings.Join(states, ", "))
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

// ReadInOrder reads a page by the database's own statement: see [Syntax].Reads. own are arguments that only this
// database has.
//
// The database finds the rows one by one, in the order of their positions, but does not know that the joined rows
// have this order. With ORDER BY it would sort whole rows. So the first statement has no ORDER BY. The page is read
// again, sorted, if the rows come in another order, or if PageQuery.MaxBytes has ended the page.
func ReadInOrder(ctx context.Context, on Querier, s *Syntax, f *Feed, q PageQuery, own Args) (*PageRows, error) {
	q.Sorted = q.Sorted || f.ULIDs != nil
	for {
		b := NewBuilder(s)
		query := q.page(s, f, own)(b)
		page, err := scanPage(ctx, on, f, q, query, b.Args())
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

// scanPage runs the statement of a page and scans its rows, until their values are larger than q.MaxBytes.
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

// Pages reads pages.
type Pages interface {
	// ReadPage reads a page together with its head. Every position up to that head is on the page, is excluded
	// by the query, or is not above q.After; if the limit ends the page, this holds up to the page's last
	// position.
	ReadPage(ctx context.Context, db *sql.DB, f *Feed, q PageQuery) (*PageRows, error)
}

// Replicas is for databases whose replicas can show a commit before the server that made it does: a primary sends a
// commit to its replicas, may wait for their acknowledgement, and only then makes the commit visible.
type Replicas interface {
	// OpenChange names a transaction that has changed the feed's head or generation, or the head of a shard with ULIDs,
	// and has not ended. Other changes may be named, too. The name is empty if there is none. If a replica showed a
	// commit before the call, the result is not empty until the commit is visible here.
	OpenChange(ctx context.Context, db *sql.DB, f *Feed, shard int) (name string, err error)
}

// Flushing is for databases that return pages with [PageRows].Unflushed.
type Flushing interface {
	// Flush writes a few bytes into a table of rowfeed. The commit of tx then puts everything on the disk that
	// was visible when tx began. Only a database that returns pages with Unflushed has anything to write.
	Flush(ctx context.Context, tx Querier, n Names) error
	// FlushAlone does a Flush by one statement on a pool. True means that the statement is committed. If the
	// database cannot tell that it would be, FlushAlone writes nothing and returns false.
	FlushAlone(ctx context.Context, pool Querier, n Names) (bool, error)
	// FlushRights are the rights that a login needs for it.
	FlushRights(n Names) []Right
}

// PageQuery asks for the positions above After, in ascending order.
type PageQuery struct {
	After feedtype.Position
	// Mark excludes tombstones up to this position. The consumer started at the beginning when the head was at
	// Mark, so it has never seen the deleted rows.
	Mark     feedtype.Position
	Limit    int
	MaxBytes int // the page ends early, after at least one row, if its values are larger than this
	// From and To are the half-open range of data shards to read. Both are 0 for the whole feed.
	From, To int
	// Shard is the shard to read, for a feed with [Feed].ULIDs.
	Shard int
	// Among are the numbers that waiting records of an outbox may have.
	Among Seqs
	// AnyDatabase allows a database with another identity than the feed's, such as a replica. Without it, a
	// page of a feed with ULIDs has an empty signature there.
	AnyDatabase bool
	// Unserved are states of the feed. In such a state, a page for a part of the feed has an empty signature.
	// It must not be empty if From and To are set, or if parts are cut from a page of the whole feed. For an
	// outbox feed they are instead the states in which rows are placed behind the head: see PageRows.Filling.
	Unserved []string
	// Sorted makes the database sort the page. Otherwise the page is read in the order in which the database
	// finds its positions, and is read again, sorted, if that was not ascending.
	Sorted bool
}

// PageRows is a page as the database has returned it.
type PageRows struct {
	Generation      int64
	TombstonesBelow feedtype.Position
	// EntriesBelow is the position up to which entries were purged, or may be purged in the future. No entry at
	// or below it is shown. A cursor below it may have missed entries.
	EntriesBelow feedtype.Position
	// Head is the highest position that the page could show. Given is the highest position that may have been
	// given by then. They differ only for feeds with ULIDs.
	Head, Given feedtype.Position
	Term        feedtype.Term // of Given, from the same row; 0 if none is known, and for feeds with ULIDs
	// Filling says that rows are being placed behind the head of the shard. More of them may appear below
	// LiveFrom, or anywhere if LiveFrom is zero.
	Filling  bool
	LiveFrom feedtype.Position
	Shard    int // the shard that was asked for, of a feed with ULIDs
	// Waiting says that records of the shard waited in the outbox when the head was read. Records that had been
	// moved by then are on the page.
	Waiting bool
	// Signature identifies the columns of the source table when the page was read. It is empty if the page must
	// not be shown: see PageQuery.AnyDatabase and PageQuery.Unserved.
	Signature string
	Rows      []PageRow
	Truncated bool // MaxBytes has ended the page
	Cut       bool // the page ended before its limit, and there may be more rows
	// Unflushed says that the database shows commits before they are on its disk. A crash could undo what the
	// page shows, until a Flush was committed.
	Unflushed bool
	// Forgetful is not nil if even a Flush cannot make commits durable. It names the setting that must be
	// changed.
	Forgetful error
}

// PageRow is one position, with the present content of its row.
type PageRow struct {
	Position feedtype.Position
	Shard    int
	Deleted  bool
	Hidden   bool
	Present  bool // the source table has the row
	// PublishedAt is in microseconds since the Unix epoch; 0 if a row of the source holds the position, and with ULIDs.
	PublishedAt int64
	Key         []any
	Values      []any // the values of Feed.Columns, valid only if Present
}
