package sqlserver

import (
	"context"
	"database/sql"
	_ "embed" // for original.sql
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed original.sql
var originalFile string

var original = dialect.NewStatements(originalFile)

// originalSchema has the objects with the names that mssql-changefeed gave.
const originalSchema = "changefeed"

// originalName returns a name that mssql-changefeed gave, such as changefeed.[lock:shop.kv].
func originalName(f *dialect.Feed, prefix, suffix string) feedtype.TableName {
	return feedtype.TableName{Schema: originalSchema, Name: prefix + ":" + f.Source.String() + suffix}
}

// originalObject is an object with a name that mssql-changefeed gave.
type originalObject struct {
	kind string
	name feedtype.TableName
	up   dialect.Step
}

// originalObjects returns the views and routines of a feed. If a trigger records the keys, writers append no records.
func originalObjects(f *dialect.Feed) (all []originalObject) {
	add := func(kind, prefix, suffix string, up dialect.Step) {
		all = append(all, originalObject{kind, originalName(f, prefix, suffix), up})
	}
	step := func(name string) dialect.Step { return original.Step(syntax, f, name, nil) }
	if !f.Outbox {
		add("procedure", "lock", "", step("original_lock"))
		add("function", "ulid", "", step("original_ulid"))
		return all
	}
	if f.Capture == feedtype.CaptureApp {
		add("view", "outbox", "", step("original_outbox"))
		add("trigger", "outbox", ":insert", step("original_insert"))
	}
	add("view", "feed", "", step("original_feed"))
	add("procedure", "read_feed", "", outbox.Step(syntax, f, "read_procedure", dialect.Args{
		"active": dialect.SQL(literal(dialect.StateActive)), "turn": dialect.SQL(literal(lockName(f))),
		"shard": dialect.SQL("@shard_id"), "last_time": dialect.SQL(dialect.Digits(dialect.LastULIDMillis)),
		"demand_versions": statement(publishing, "demand_versions").With(nil),
		"set_identity":    statement(publishing, "set_identity").With(nil)}))
	return all
}

// originalUp returns the statements that make or replace a feed's objects with the names that mssql-changefeed gave.
func originalUp(f *dialect.Feed) (steps []dialect.Step) {
	add := func(names ...string) {
		for _, name := range names {
			steps = append(steps, original.Step(syntax, f, name, nil))
		}
	}
	add("original_schema", "refuse_taken")
	for _, o := range originalObjects(f) {
		steps = append(steps, o.up)
	}
	if !f.Outbox || f.Capture == feedtype.CaptureApp {
		add("original_writers")
	}
	if f.Outbox {
		add("original_type", "original_readers")
	}
	add("original_setup")
	return steps
}

// originalDown returns the statements that remove what originalUp has made.
func originalDown(f *dialect.Feed) (steps []dialect.Step) {
	for _, name := range []string{"drop_originals", "drop_original_type", "drop_original_roles",
		"drop_original_schema"} {
		steps = append(steps, original.Step(syntax, f, name, nil))
	}
	return steps
}

// originalProblems returns a sentence for each of a feed's objects with the names that mssql-changefeed gave that is
// missing, or differs from the one that originalUp makes. Views are found by their names only.
func originalProblems(ctx context.Context, q dialect.Querier, f *dialect.Feed) (problems []string, err error) {
	for _, o := range originalObjects(f) {
		var text string
		var own bool
		err := dialect.One(ctx, q, syntax, original.For(syntax, f, "original_state"),
			dialect.Args{"object": dialect.Qualified(syntax, o.name)}, &text, &own)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			problems = append(problems, dialect.RoutineMissing(o.kind, o.name.String()))
		case err != nil:
			return nil, err
		case text == "": // this login may not read it
		case !own:
			problems = append(problems, dialect.RoutineMissing(o.kind, o.name.String())+": another object has its name")
		case !dialect.SameText(bodyOf(text), bodyOf(o.up.SQL)):
			problems = append(problems, dialect.RoutineDiffers(o.kind, o.name.String()))
		}
	}
	return problems, nil
}
