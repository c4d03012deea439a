package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// fillBatch is the number of rows that one transaction writes.
const fillBatch = 10_000

// tables are the tables of one run. Their names begin with the run's prefix.
type tables struct {
	db     *database
	prefix string
}

// newTables chooses a prefix that nothing in the schema has.
func newTables(ctx context.Context, db *database) (*tables, error) {
	for {
		t := &tables{db: db, prefix: stem + strings.ToLower(rand.Text()[:4]) + "_"}
		existing, err := db.objects(ctx, t.prefix)
		if err != nil || len(existing) == 0 {
			return t, err
		}
	}
}

func (t *tables) name(table string) feedtype.TableName {
	return feedtype.TableName{Schema: t.db.schema, Name: t.prefix + table}
}

// quoted is the name of a table in a statement.
func (t *tables) quoted(table string) string {
	return dialect.Qualified(t.db.dialect.Syntax, t.name(table))
}

// specName is the name of a table in a FeedSpec.
func (t *tables) specName(table string) string {
	quote := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
	if t.db.schema == "" {
		return quote(t.prefix + table)
	}
	return quote(t.db.schema) + "." + quote(t.prefix+table)
}

// createStatement makes a table whose rows have an id and a payload.
func (t *tables) createStatement(table string, payload int) string {
	return fmt.Sprintf("CREATE TABLE %s (id %s NOT NULL PRIMARY KEY, payload varchar(%d) NOT NULL)",
		t.quoted(table), t.db.flavour.key, payload)
}

// insertStatement inserts a row. Its arguments are the id and the payload.
func (t *tables) insertStatement(table string) string {
	mark := t.db.dialect.Placeholder
	return "INSERT INTO " + t.quoted(table) + " (id, payload) VALUES (" + mark(1) + ", " + mark(2) + ")"
}

// fill makes a table with rows of the ids from 1.
func (t *tables) fill(ctx context.Context, table string, rows, payload int) error {
	doing, quoted := "fill the table "+t.name(table).String(), t.quoted(table)
	statements := []string{
		t.createStatement(table, payload),
		fmt.Sprintf("INSERT INTO %s (id, payload) VALUES (1, '%s')", quoted, text(0, payload)),
	}
	for have := 1; have < rows; {
		n := min(have, fillBatch, rows-have)
		statements = append(statements,
			fmt.Sprintf("INSERT INTO %s (id, payload) SELECT id + %d, payload FROM %s WHERE id <= %d",
				quoted, have, quoted, n))
		have += n
	}
	if t.db.flavour.analyze != "" {
		statements = append(statements, fmt.Sprintf(t.db.flavour.analyze, quoted))
	}
	for _, query := range statements {
		if err := t.db.exec(ctx, doing, query); err != nil {
			return err
		}
	}
	return nil
}

func (t *tables) count(ctx context.Context, table string) (n int, err error) {
	if err := t.db.pool.QueryRowContext(ctx, "SELECT count(*) FROM "+t.quoted(table)).Scan(&n); err != nil {
		return 0, t.db.explain("count the rows of "+t.name(table).String(), err)
	}
	return n, nil
}

// text is a payload of a number of bytes. Payloads with different starts differ.
func text(start, size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte('a' + (start+i)%26)
	}
	return string(b)
}
