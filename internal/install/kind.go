package install

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// kind is the part of installing that differs between the modes.
type kind interface {
	// check fills in the defaults of a spec, and refuses what the mode does not support.
	check(s *feedtype.FeedSpec) error
	// complete checks a spec against the table, and adds to the record what the mode needs.
	complete(d *dialect.Dialect, r *catalog.FeedRecord, spec feedtype.FeedSpec, table *dialect.Table) error
	// admit refuses a table for the rows that it has. It runs before anything is made.
	admit(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord) error
	// up returns the statements that make the feed's objects. down removes the objects.
	up(db *Database, r *catalog.FeedRecord, table *dialect.Table) ([]dialect.Step, error)
	down(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord, table *dialect.Table) error
	// begin runs after the objects were made, and returns the state of the feed.
	begin(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord) (state string, err error)
	// declare is for printing: it declares the columns and indexes that a spec names apart from the key, and removes
	// the types of these columns from the spec.
	declare(t *declared, spec *feedtype.FeedSpec) error
	// script returns the statements of begin for a printed script. note is the comment on the state.
	script(db *Database, r *catalog.FeedRecord) (steps []dialect.Step, state, note string, err error)
	// verify returns one sentence for each object that is not as the feed needs it. mend repairs the objects.
	verify(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord,
		table *dialect.Table) ([]string, error)
	mend(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord, table *dialect.Table) error
	// rights returns the rights on rowfeed's tables and functions that writers and readers need in this mode. writing
	// is empty if writers need none.
	rights(d *dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right)
}

var kinds = map[string]kind{feedtype.ModeSequence: sequenced{}, feedtype.ModeBlocking: blocking{},
	feedtype.ModeOutbox: outbox{}}

// kindOf returns the kind of a feed, or why this version cannot read its record.
func kindOf(r *catalog.FeedRecord) (kind, error) { return kinds[r.Mode], r.Unreadable }
