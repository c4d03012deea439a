package sink

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Transactional is a Sink whose receiver is a SQL database that also stores the relay's cursor. Entries and cursor
// are committed together, so each entry takes effect exactly once. A relay calls the methods below instead of
// Deliver.
type Transactional interface {
	Sink
	// DB returns rowfeed on the receiver's database, which has the cursor.
	DB() *rowfeed.DB
	// Apply writes entries in the transaction, in their order.
	Apply(ctx context.Context, tx *sql.Tx, entries []feedtype.Entry) error
	// Begin is called in the transaction of the first page of a pass from the beginning, before Apply. All rows that
	// the receiver has at that time are of an earlier pass.
	Begin(ctx context.Context, tx *sql.Tx) error
	// Complete is called in the transaction whose page completes such a pass, after Apply. It removes the rows that
	// the pass did not bring.
	Complete(ctx context.Context, tx *sql.Tx) error
}
