package mysql

import (
	"context"
	"database/sql"
	_ "embed" // for publish.sql
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed publish.sql
var publishFile string

var publishing = dialect.NewStatements(publishFile)

var beginPublish, endPublish = text(publishing, "begin_publish"), text(publishing, "end_publish")

// Begin implements [dialect.Core]. It sets the isolation level of one transaction: the server's default, REPEATABLE
// READ, would read an old snapshot under the lock. For publishers it bounds idling, until the transaction has ended.
func (database) Begin(p dialect.Purpose, _ dialect.Names) (b dialect.Beginning) {
	b.Options = &sql.TxOptions{Isolation: sql.LevelReadCommitted,
		ReadOnly: p == dialect.ForRead || p == dialect.ForCheck}
	if p == dialect.ForCheck {
		b.Options.Isolation = sql.LevelRepeatableRead
	}
	if isPublishing(p) {
		b.First, b.After = []string{beginPublish}, endPublish
	}
	return b
}

func isPublishing(p dialect.Purpose) bool { return p == dialect.ForPublish || p == dialect.ForMove }

// These are fragments of statements of other files.
var (
	identityHere = text(publishing, "identity")
	insertDates  = inKeyMode("INSERT")
	updateDates  = inKeyMode("UPDATE")
)

var askIdentity = statement(publishing, "ask_identity")

// Identity implements [dialect.Core].
func (d database) Identity(ctx context.Context, q dialect.Querier, _ dialect.Names) (string, error) {
	var id, locked string
	err := dialect.One(ctx, q, syntax, askIdentity, nil, &id, &locked)
	if err == nil && isReadOnly(locked) {
		err = dialect.ErrReadOnly
	}
	return id, err
}

// identity is [dialect.Dialect].IdentitySQL.
func identity(dialect.Names) string { return identityHere }

func isReadOnly(value string) bool { return value != "0" && value != "OFF" }

// LockSequence implements [dialect.Publishing].
func (d database) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	var s dialect.Sequence
	var locked string
	var mode sql.NullString
	err := dialect.One(ctx, tx, syntax, publishing.For(syntax, f, "lock_sequence"),
		dialect.Args{"feed": f.Name, "unfit": dialect.SQL(unfit)},
		&s.Value, &s.Version, &s.Term, &s.UpdatedAt, &s.Now, &s.Identity, &locked, &mode)
	if err == nil && isReadOnly(locked) {
		err = dialect.ErrReadOnly
	}
	if err == nil {
		err = refuseMode(mode)
	}
	return s, err
}

var among = statement(publishing, "among")

// which is the part of a scan among some numbers that follows the table's name.
func which(column string, seqs dialect.Seqs) string {
	if seqs.All() {
		return ""
	}
	return " " + dialect.NewBuilder(syntax).Fill(among, dialect.Args{"numbers": dialect.SQL(seqs.OneByOne(column))})
}

// TakeChanges implements [dialect.Publishing] by the statement oldest.
func (d database) TakeChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed, among dialect.Seqs,
	limit int) ([]dialect.Change, error) {
	b := dialect.NewBuilder(syntax)
	query := b.Fill(publishing.For(syntax, f, "oldest"),
		dialect.Args{"range": dialect.SQL(which("seq", among)), "limit": limit})
	return dialect.ReadChanges(ctx, tx, f, query, b.Args())
}

// insertKeys begins the statement that copies keys.
func insertKeys(f *dialect.Feed) dialect.SQL {
	if slices.ContainsFunc(f.Key, func(c dialect.Column) bool {
		return c.Kind == feedtype.Date || c.Kind == feedtype.Timestamp
	}) {
		return insertDates
	}
	return "INSERT"
}

// inKeyMode begins a statement that accepts every date.
func inKeyMode(verb dialect.SQL) dialect.SQL {
	return dialect.SQL(dialect.NewBuilder(syntax).Fill(statement(publishing, "in_key_mode"),
		dialect.Args{"verb": verb}))
}

// maxRuns is the number of runs of seqs up to which a statement names ranges. For more runs a list of seqs,
// each of which is looked up, is faster.
const maxRuns = 16

// AssignPositions implements [dialect.Publishing] by the statement assign_positions_of_runs, assign_positions or
// assign_positions_by_kind.
func (d database) AssignPositions(ctx context.Context, tx dialect.Querier, f *dialect.Feed, as []dialect.Assignment,
	publishedAt int64) error {
	assigned := dialect.Assigned(f, as)
	args := dialect.Args{"insert": insertKeys(f), "published": publishedAt}
	name := "assign_positions"
	if runs := dialect.Runs(assigned.Seqs()); !assigned.Triples && len(runs) <= maxRuns {
		name = "assign_positions_of_runs"
		var ranges, places []dialect.Built
		place := assigned.Base + 1
		for _, r := range runs {
			ranges = append(ranges,
				publishing.For(syntax, f, "run").With(dialect.Args{"first": r.First, "last": r.Last()}))
			places = append(places, publishing.For(syntax, f, "place_of_run").With(
				dialect.Args{"last": r.Last(), "less": place - r.First}))
			place += r.N
		}
		args["ranges"], args["places"] = dialect.Joined(" OR ", ranges), dialect.Joined(" ", places)
	} else {
		if assigned.OtherKinds {
			name = "assign_positions_by_kind"
		}
		columns, shard, hides := "seq BIGINT PATH '$'", "0", "0"
		if assigned.Triples {
			columns, shard, hides =
				"seq BIGINT PATH '$[0]', shard INT PATH '$[1]', kind INT PATH '$[2]'", "j.shard", "j.kind = 2"
		}
		if f.OwnShard != "" {
			shard = publishing.For(syntax, f, "own_shard_of_key").String()
		}
		args["base"], args["list"] = assigned.Base, dialect.SQL("'"+assigned.JSON()+"'")
		args["columns"], args["hides"] = dialect.SQL(columns), dialect.SQL(hides)
		args["shard"], args["bucket"] = dialect.SQL(shard), dialect.SQL(f.Bucket(shard, "DIV"))
	}
	_, err := dialect.Exec(ctx, tx, syntax, publishing.For(syntax, f, name), args)
	return err
}

// DeleteChanges implements [dialect.Publishing].
func (d database) DeleteChanges(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	seqs []int64) (total int64, err error) {
	runs := dialect.Runs(seqs)
	if len(runs) > maxRuns {
		return dialect.Exec(ctx, tx, syntax, publishing.For(syntax, f, "delete_changes"),
			dialect.Args{"seqs": dialect.SQL("'" + dialect.SeqList(seqs) + "'")})
	}
	for _, r := range runs {
		n, err := dialect.Exec(ctx, tx, syntax, publishing.For(syntax, f, "delete_run"),
			dialect.Args{"first": r.First, "last": r.Last(), "count": r.N})
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}
