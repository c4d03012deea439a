package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// outbox is the mode whose positions are ULIDs that whoever reads first gives to the records
// of an outbox. A shard is read as with mode blocking.
type outbox struct{ blocking }

func (outbox) complete(d dialect.Dialect, r *record, _ FeedSpec, _ *dialect.Table) error {
	r.ULIDs = &dialect.ULIDColumns{Position: d.OwnULID(), Shard: dialect.Column{Name: "shard", Type: "bigint", Kind: dialect.Integer}, Index: "PRIMARY"}
	return nil
}

func (outbox) describe(dialect.Dialect, *dialect.Feed, *dialect.Table) error { return nil }

func (outbox) up(db *DB, r *record, _ *dialect.Table) ([]dialect.Step, error) {
	return db.d.OutboxUp(r.feed(db.names)), nil
}

func (outbox) down(ctx context.Context, db *DB, q dialect.Querier, r *record, _ *dialect.Table) error {
	if err := run(ctx, q, db.d.OutboxDown(r.feed(db.names))); err != nil {
		return err
	}
	b := dialect.NewBuilder(db.d)
	_, err := q.Exec(ctx, "DELETE FROM "+db.table("shards")+" WHERE feed = "+b.Arg(r.Name), b.Args()...)
	return err
}

func (outbox) begin(context.Context, *DB, dialect.Querier, *record) (string, error) {
	return stateActive, nil
}

// verify looks whether the tables are there.
func (outbox) verify(ctx context.Context, db *DB, q dialect.Querier, r *record, _ *dialect.Table) (problems []string, err error) {
	for _, name := range r.feed(db.names).Tables() {
		_, err := db.d.Describe(ctx, q, name)
		switch {
		case err == nil:
		case db.d.Classify(err) == dialect.ClassUndefined:
			problems = append(problems, "table "+name.String()+" is missing")
		default:
			return nil, err
		}
	}
	return problems, nil
}

func (outbox) mend(ctx context.Context, db *DB, q dialect.Querier, r *record, _ *dialect.Table) error {
	return run(ctx, q, db.d.OutboxUp(r.feed(db.names)))
}
