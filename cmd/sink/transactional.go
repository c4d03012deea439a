package sink

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Transactional is a Sink whose receiver is a SQL database that also keeps the relay's
// cursor: entries and cursor are committed together, so that each takes effect exactly
// once. A relay calls these methods in the place of Deliver.
type Transactional interface {
	Sink
	// DB is rowfeed on the receiver, where the cursor is.
	DB() *rowfeed.DB
	// Apply writes entries in the transaction, in their order.
	Apply(ctx context.Context, tx *sql.Tx, entries []feedtype.Entry) error
	// Begin is called in the transaction of the first page of a pass from the beginning,
	// before Apply: what the receiver has is of an older pass, if of any.
	Begin(ctx context.Context, tx *sql.Tx) error
	// Complete is called in the transaction whose page completes such a pass, after
	// Apply: what the pass did not bring is to go.
	Complete(ctx context.Context, tx *sql.Tx) error
}
