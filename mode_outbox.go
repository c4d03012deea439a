package rowfeed

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// outbox is the mode whose positions are ULIDs that whoever reads first gives to the records
// of an outbox. A shard is read as with mode blocking.
type outbox struct{ blocking }

func (outbox) complete(d dialect.Dialect, r *record, _ FeedSpec, table *dialect.Table) error {
	if problem := recordShardProblem(table, r.ShardColumn); problem != nil {
		return &Error{Code: Refused, Object: fmt.Sprintf("table %q", table.Name.String()), Cause: problem.what, Next: problem.next}
	}
	r.ULIDs = &dialect.ULIDColumns{Position: d.OwnULID(), Shard: dialect.Column{Name: "shard", Type: "bigint", Kind: dialect.Integer}, Index: "PRIMARY"}
	return nil
}

// recordShardProblem is why a column cannot say which shard records are in. A trigger that
// failed over it would fail the writer's INSERT.
func recordShardProblem(table *dialect.Table, name string) *ulidProblem {
	if name == "" {
		return nil
	}
	switch c := table.Column(name); {
	case c == nil:
		return &ulidProblem{fmt.Sprintf("it has no column %q", name), "--shard-column takes the integer column that says which shard a row is in"}
	case c.Nullable:
		return &ulidProblem{fmt.Sprintf("shard column %q may be NULL", name), "declare it NOT NULL"}
	case c.Kind != dialect.Integer && (c.Kind != dialect.Dynamic || !strings.Contains(strings.ToUpper(c.Type), "INT")):
		return &ulidProblem{fmt.Sprintf("shard column %q is %s", name, c.Type), "make it an integer"}
	}
	return nil
}

func (outbox) describe(dialect.Dialect, *dialect.Feed, *dialect.Table) error { return nil }

func (outbox) up(db *DB, r *record, table *dialect.Table) ([]dialect.Step, error) {
	return db.feedUp(r, table)
}

func (outbox) down(ctx context.Context, db *DB, q dialect.Querier, r *record, table *dialect.Table) error {
	if err := run(ctx, q, db.d.FeedDown(r.feed(db.names), table)); err != nil {
		return err
	}
	return db.forgetShards(ctx, q, r)
}

func (outbox) begin(context.Context, *DB, dialect.Querier, *record) (string, error) {
	return stateActive, nil
}

// rights: a writer cannot say where in the order its record stands.
func (outbox) rights(_ dialect.Dialect, f *dialect.Feed) (writing, reading []dialect.Right) {
	if f.Capture == dialect.CaptureApp {
		writing = []dialect.Right{dialect.May("INSERT", f.Records(), append([]string{"shard", "time_hint"}, f.StoredKey()...)...)}
	}
	for _, table := range []dialect.TableName{f.Names.Table("sequences"), f.Names.Table("shards"), f.Records(), f.Placed()} {
		reading = append(reading, dialect.May("SELECT", table))
	}
	return writing, reading
}

// verify looks at the tables, at the trigger, and at the column that it takes the shard from.
func (outbox) verify(ctx context.Context, db *DB, q dialect.Querier, r *record, table *dialect.Table) ([]string, error) {
	problems, err := db.d.Verify(ctx, q, r.feed(db.names), table)
	if problem := recordShardProblem(table, r.ShardColumn); err == nil && problem != nil {
		problems = append(problems, problem.what)
	}
	return problems, err
}

func (outbox) mend(ctx context.Context, db *DB, q dialect.Querier, r *record, table *dialect.Table) error {
	return sequenced{}.mend(ctx, db, q, r, table)
}
