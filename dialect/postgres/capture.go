package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// FeedUp implements [dialect.Schema]. It runs in one transaction. The triggers come last, because they lock the
// source table against writers.
func (d Dialect) FeedUp(f *dialect.Feed, t *dialect.Table) ([]dialect.Step, error) {
	for _, c := range f.Key {
		if c.Kind == feedtype.JSON && c.Type != "jsonb" {
			return nil, fmt.Errorf("key column %q is an array, which travels as JSON and cannot be turned back: "+
				"use another unique index with --key", c.Name)
		}
	}
	steps := append(d.tables(f), d.rowColumns(f, t)...)
	if f.Outbox {
		steps = d.outboxTables(f)
	}
	if f.Capture != feedtype.CaptureTrigger {
		return steps, nil
	}
	return append(steps, d.triggers(f, t)...), nil
}

func (d Dialect) tables(f *dialect.Feed) []dialect.Step {
	var decls []string
	for _, c := range f.Key {
		decls = append(decls, d.Quote(c.Stored)+" "+c.Decl+" NOT NULL")
	}
	key := strings.Join(decls, ",\n  ")
	steps := []dialect.Step{
		// The identity's sequence caches one value, so seqs follow the order of the INSERTs.
		{Note: "changes: which keys were written; writers append, publishers delete what they have published",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Changes()) + ` (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  ` + key + `,
  kind smallint NOT NULL DEFAULT 0,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.1)`},
		{Note: "positions: where each key stands in the feed; only publishers write it",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Positions()) + ` (
  ` + key + `,
  feed_sync_id bigint NOT NULL,
  shard integer NOT NULL,
  bucket integer NOT NULL,
  deleted smallint NOT NULL,
  hidden smallint NOT NULL,
  published_at bigint NOT NULL,
  PRIMARY KEY (` + strings.Join(dialect.StoredRefs(d, f, ""), ", ") + `)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)`},
		{Note: "pages are read in this order; no position is given twice",
			SQL: "CREATE UNIQUE INDEX IF NOT EXISTS " + d.Quote(f.Object("position")) + " ON " +
				dialect.Qualified(d, f.Positions()) + " (feed_sync_id)"},
		{Note: "old tombstones are found here",
			SQL: "CREATE INDEX IF NOT EXISTS " + d.Quote(f.Object("deleted")) + " ON " +
				dialect.Qualified(d, f.Positions()) + " (feed_sync_id) WHERE deleted = 1"},
	}
	if f.ByBucket() {
		steps = append(steps, d.bucketIndex(f))
	}
	return steps
}

// bucketIndex contains the shard, so that an entry of another shard in the same bucket is excluded by the index
// alone.
func (d Dialect) bucketIndex(f *dialect.Feed) dialect.Step {
	return dialect.Step{Note: "pages of a part of the shards are read in this order",
		SQL: "CREATE INDEX IF NOT EXISTS " + d.Quote(f.Object("bucket")) + " ON " +
			dialect.Qualified(d, f.Positions()) + " (bucket, feed_sync_id, shard)"}
}

func (d Dialect) function(f *dialect.Feed, suffix string) string {
	return dialect.Qualified(d, feedtype.TableName{Schema: f.Names.Schema, Name: f.Object(suffix)})
}

// captureBody returns the body of the trigger function. It appends keys and does nothing else. It runs on every
// UPDATE and reads only key columns. So it also captures changes of columns that were added later, and of
// values that compare as equal (collations, numeric scale, json). All its names and operators are qualified, so
// that it works without a search_path of its own: see ownPath.
func (d Dialect) captureBody(f *dialect.Feed) string {
	record := "INSERT INTO " + dialect.Qualified(d, f.Changes()) + " (" +
		strings.Join(dialect.StoredRefs(d, f, ""), ", ") + ") VALUES "
	oldKey, newKey := dialect.KeyRefs(d, f, "OLD"), dialect.KeyRefs(d, f, "NEW")
	return `
BEGIN
  IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' OR TG_OP OPERATOR(pg_catalog.=) 'UPDATE' AND (` + d.otherKey(f) + `) THEN
    ` + record + "(" + strings.Join(oldKey, ", ") + `);
  END IF;
  IF TG_OP OPERATOR(pg_catalog.<>) 'DELETE' THEN
    ` + record + "(" + strings.Join(newKey, ", ") + `);
  END IF;
  RETURN NULL;
END
`
}

// otherKey returns the condition that an UPDATE has changed the key, whose columns are never NULL. If equal
// values of a column can have different text, the condition compares bytes. The text of a float depends on
// extra_float_digits, and the operator of the type may be in any schema. For equal values with different bytes,
// the trigger records the old key in addition.
func (d Dialect) otherKey(f *dialect.Feed) string {
	oldKey, newKey := dialect.KeyRefs(d, f, "OLD"), dialect.KeyRefs(d, f, "NEW")
	moved := make([]string, len(f.Key))
	for i, c := range f.Key {
		if c.Exact {
			moved[i] = oldKey[i] + " OPERATOR(pg_catalog.<>) " + newKey[i]
		} else {
			// PostgreSQL would compare two row constructors column by column; the cast makes them records.
			moved[i] = "ROW(" + oldKey[i] + ")::pg_catalog.record OPERATOR(pg_catalog.*<>) ROW(" + newKey[i] + ")"
		}
	}
	return strings.Join(moved, " OR ")
}

// truncateBody returns the body of the function that runs before a TRUNCATE of the table or of one partition.
func (d Dialect) truncateBody(f *dialect.Feed) string {
	// format() interprets % in the text.
	text := strings.ReplaceAll("INSERT INTO "+dialect.Qualified(d, f.Changes())+" ("+
		strings.Join(dialect.StoredRefs(d, f, ""), ", ")+") SELECT "+
		strings.Join(dialect.KeyRefs(d, f, ""), ", "), "%", "%%") + " FROM %I.%I"
	// A snapshot that is older than the TRUNCATE may not show all rows that it removes.
	return `
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'TRUNCATE of a table with a rowfeed feed needs READ COMMITTED'
      USING ERRCODE = 'feature_not_supported', HINT = 'Begin the transaction in READ COMMITTED, or use DELETE.';
  END IF;
  EXECUTE format(` + d.Literal(text) + `, TG_TABLE_SCHEMA, TG_TABLE_NAME);
  RETURN NULL;
END
`
}

const (
	// owned makes a function run with its owner's rights. So writers need no right on rowfeed's tables.
	owned = "SECURITY DEFINER"
	// security also fixes the search_path, so that writers cannot make the function use their own objects. With
	// row_security off, PostgreSQL fails if a policy would hide rows.
	security = owned + " SET search_path = pg_catalog, pg_temp SET row_security = off"
)

// ownPath tells whether the trigger function sets a search_path of its own. Setting one costs a third of what
// the trigger costs for each row. The capture function does without if the types of the key columns are all
// built into the server, because then no code of users handles its values.
//
// With other types there are two dangers. After ALTER TABLE has changed the key's type, and until `feed
// upgrade`, PostgreSQL casts the keys to the former type. And the CHECK of a domain may call functions of
// users, which find names by the search_path. A writer could then make them run its own code with the owner's
// rights.
func ownPath(f *dialect.Feed, suffix string) bool {
	return suffix != "capture" || slices.ContainsFunc(f.Key, func(c dialect.Column) bool {
		name := baseName(c.Type)
		return !slices.Contains(plain, name)
	})
}

// plain are types that are built into the server. A domain has another name.
var plain = []string{"int2", "int4", "int8", "text", "varchar", "uuid", "bool", "bytea", "date", "timestamp",
	"timestamptz",
	"numeric", "float4", "float8", "bpchar"}

func (d Dialect) functionStep(f *dialect.Feed, suffix, note, body string) dialect.Step {
	rights := owned
	if ownPath(f, suffix) {
		rights = security
	}
	return dialect.Step{Note: note, SQL: "CREATE OR REPLACE FUNCTION " + d.function(f, suffix) +
		"() RETURNS trigger LANGUAGE plpgsql " +
		rights + " AS " + d.Literal(body)}
}

// functions returns the bodies of the feed's trigger functions by suffix, and the suffixes in the order in
// which the functions are made.
func (d Dialect) functions(f *dialect.Feed) (suffixes []string, bodies map[string]string) {
	if f.Outbox {
		return []string{"capture"}, map[string]string{"capture": d.recordBody(f)}
	}
	return []string{"capture", "truncate"},
		map[string]string{"capture": d.captureBody(f), "truncate": d.truncateBody(f)}
}

func (d Dialect) triggers(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	suffixes, bodies := d.functions(f)
	notes := map[string]string{"capture": "records the keys that a statement wrote",
		"truncate": "records every key before a TRUNCATE"}
	var steps []dialect.Step
	var all, literals []string
	for _, suffix := range suffixes {
		steps = append(steps, d.functionStep(f, suffix, notes[suffix], bodies[suffix]))
		all = append(all, d.function(f, suffix)+"()")
		literals = append(literals, d.Literal(d.function(f, suffix)+"()"))
	}
	events := "INSERT OR UPDATE OR DELETE"
	if f.Outbox { // rows are only appended, and a row with another key counts as another row
		events = "INSERT OR UPDATE"
	}
	steps = append(steps,
		dialect.Step{Note: "nobody else hangs the functions on a table of theirs",
			SQL: "REVOKE ALL ON FUNCTION " + strings.Join(all, ", ") + " FROM PUBLIC"},
		dialect.Step{Note: "except the table's owner, who makes partitions", SQL: "DO " +
			d.Literal("BEGIN EXECUTE format('GRANT EXECUTE ON FUNCTION "+
				strings.Repeat("%s, ", len(all)-1)+"%s TO %I', "+strings.Join(literals, ", ")+
				", (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = "+
				d.Literal(dialect.Qualified(d, f.Source))+"::regclass)); END")},
		dialect.Step{Note: "row level: statement triggers of a partitioned table miss writes to a partition, " +
			"and logical replication fires none",
			SQL: "CREATE OR REPLACE TRIGGER " + d.Quote(f.Object("capture")) + " AFTER " + events + " ON " +
				dialect.Qualified(d, f.Source) + " FOR EACH ROW EXECUTE FUNCTION " + d.function(f, "capture") + "()"})
	steps = append(steps, d.ownTriggers(f, f.Source)...)
	for _, p := range t.Partitions {
		steps = append(steps, d.ownTriggers(f, p.Name)...)
	}
	return steps
}

// ownTriggers returns the steps that the table and each partition need for themselves. PostgreSQL copies the
// row trigger to a new partition, with its ENABLE ALWAYS, but not the TRUNCATE trigger.
func (d Dialect) ownTriggers(f *dialect.Feed, table feedtype.TableName) (steps []dialect.Step) {
	var enabled []string
	suffixes, _ := d.functions(f)
	for _, suffix := range suffixes {
		enabled = append(enabled, "ENABLE ALWAYS TRIGGER "+d.Quote(f.Object(suffix)))
	}
	if !f.Outbox {
		steps = append(steps, dialect.Step{Note: "TRUNCATE fires no row trigger",
			SQL: "CREATE OR REPLACE TRIGGER " + d.Quote(f.Object("truncate")) + " BEFORE TRUNCATE ON " +
				dialect.Qualified(d, table) + " FOR EACH STATEMENT EXECUTE FUNCTION " + d.function(f, "truncate") +
				"()"})
	}
	return append(steps, dialect.Step{Note: "fire for rows that come by logical replication too",
		SQL: "ALTER TABLE " + dialect.Qualified(d, table) + " " + strings.Join(enabled, ", ")})
}

// NewPartitions implements [dialect.Schema]. A new partition lacks the TRUNCATE trigger. Verify
// reports a trigger that exists, but is disabled or differs: a user has changed it.
func (d Dialect) NewPartitions(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	t *dialect.Table) ([]dialect.NewPartition, error) {
	if f.Capture != feedtype.CaptureTrigger || f.Outbox || len(t.Partitions) == 0 {
		return nil, nil
	}
	type lack struct {
		table                        feedtype.TableName
		owner, login, runs           string
		mayAlter, mayExecute, mayRun bool
	}
	function := d.function(f, "truncate")
	args := []any{dialect.Qualified(d, f.Source), f.Object("truncate"), function + "()"}
	all, err := dialect.QueryAll(ctx, q, `SELECT n.nspname::text, c.relname::text,
  quote_ident(pg_get_userbyid(c.relowner)), quote_ident(current_user),
  quote_ident(pg_get_userbyid(f.proowner)), pg_has_role(c.relowner, 'USAGE'), has_function_privilege(f.oid, 'EXECUTE'),
  has_table_privilege(f.proowner, c.oid, 'SELECT')
FROM pg_partition_tree(to_regclass($1)) p JOIN pg_class c ON c.oid = p.relid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_proc f ON f.oid = to_regprocedure($3)
WHERE p.level > 0 AND NOT EXISTS (SELECT 1 FROM pg_trigger g WHERE g.tgrelid = p.relid AND g.tgname = $2::text)
ORDER BY 1, 2`, args, func(rows dialect.Rows) (l lack, err error) {
		return l, rows.Scan(&l.table.Schema, &l.table.Name, &l.owner, &l.login,
			&l.runs, &l.mayAlter, &l.mayExecute, &l.mayRun)
	})
	var found []dialect.NewPartition
	for _, l := range all {
		i := slices.IndexFunc(t.Partitions, func(p dialect.Partition) bool { return p.Name == l.table })
		if i < 0 {
			continue // the partition was added after the table was described
		}
		n := dialect.NewPartition{Partition: t.Partitions[i], Owner: l.owner, Steps: d.ownTriggers(f, l.table)}
		switch {
		case !l.mayRun: // the trigger would make every TRUNCATE of the partition fail
			n.Lacks = "the role " + l.runs + ", which runs the feed's triggers, may not read it"
			n.Grant = "GRANT SELECT ON " + dialect.Qualified(d, l.table) + " TO " + l.runs
		case !l.mayAlter:
			n.Lacks = "the login " + l.login + " is no member of the role " + l.owner + ", which owns it"
			n.Grant, n.ByOwner = "GRANT "+l.owner+" TO "+l.login, true
		case !l.mayExecute:
			n.Lacks = "the login " + l.login + " may not execute the function " + function
			n.Grant = "GRANT EXECUTE ON FUNCTION " + function + " TO " + l.login
		}
		found = append(found, n)
	}
	return found, err
}

// TriggerNames implements [dialect.Schema]: the row trigger and the TRUNCATE trigger.
func (Dialect) TriggerNames(f *dialect.Feed) []string {
	return []string{f.Object("capture"), f.Object("truncate")}
}

// FeedDown implements [dialect.Schema]. It drops the functions together with their triggers, on whatever table
// these are.
func (d Dialect) FeedDown(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	if f.Outbox {
		return []dialect.Step{
			{Note: "its trigger", SQL: "DROP FUNCTION IF EXISTS " + d.function(f, "capture") + "() CASCADE"},
			{Note: "its outbox", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Records())},
			{Note: "its places", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Placed())},
		}
	}
	return append(d.dropRowColumns(f, t), []dialect.Step{
		{Note: "triggers", SQL: "DROP FUNCTION IF EXISTS " + d.function(f, "capture") + "() CASCADE"},
		{Note: "triggers for TRUNCATE", SQL: "DROP FUNCTION IF EXISTS " + d.function(f, "truncate") + "() CASCADE"},
		{Note: "changes", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Changes())},
		{Note: "positions", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Positions())},
	}...)
}
