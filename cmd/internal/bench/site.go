package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	// stem begins the prefix of every run. With the characters that tell the runs apart a
	// prefix is as long as rowfeed takes one.
	stem = "rfbench"
	// marker is the run's table about itself: made first and dropped last, so that what
	// belongs to no run is never taken for something that does.
	marker = "run"
	// beat is how often a run says that it is at work; see Clean.
	beat = 2 * time.Second
	// removal bounds the removal of everything, and dropping that of one table, which waits
	// for whoever reads it, a backup for example.
	removal      = 2 * time.Minute
	dropping     = 10 * time.Second
	removalPause = 300 * time.Millisecond
	// fillBatch is the number of rows that one transaction writes.
	fillBatch = 10_000
)

var prefixPattern = regexp.MustCompile(`^` + stem + `[a-z0-9]{4}_`)

// site is where a run takes place: everything whose name begins with its prefix.
type site struct {
	url     string
	pool    *sql.DB
	d       dialect.Dialect
	flavour flavour
	schema  string
	prefix  string
	durable bool
}

func (s *site) object() string { return "database " + open.Redact(s.url) }

func (s *site) name(table string) feedtype.TableName {
	return feedtype.TableName{Schema: s.schema, Name: s.prefix + table}
}

// quoted is a table in a statement.
func (s *site) quoted(table string) string { return dialect.Qualified(s.d, s.name(table)) }

// given is a table as FeedSpec takes it.
func (s *site) given(table string) string {
	quote := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
	if s.schema == "" {
		return quote(s.prefix + table)
	}
	return quote(s.schema) + "." + quote(s.prefix+table)
}

func (s *site) exec(ctx context.Context, doing, query string) error {
	if _, err := s.pool.ExecContext(ctx, query); err != nil {
		return s.fail(doing, err)
	}
	return nil
}

// choose takes a prefix that nothing in the schema has.
func (s *site) choose(ctx context.Context) error {
	for {
		s.prefix = stem + strings.ToLower(rand.Text()[:4]) + "_"
		taken, err := s.things(ctx, s.prefix)
		if err != nil || len(taken) == 0 {
			return err
		}
	}
}

// claim makes the marker.
func (s *site) claim(ctx context.Context) error {
	doing := "create the table " + s.name(marker).String()
	if err := s.exec(ctx, doing, "CREATE TABLE "+s.quoted(marker)+" (id bigint NOT NULL PRIMARY KEY, "+
		"owner varchar(200) NOT NULL, began_at bigint NOT NULL, beats bigint NOT NULL)"); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	b := dialect.NewBuilder(s.d)
	query := "INSERT INTO " + s.quoted(marker) + " (id, owner, began_at, beats) VALUES (1, " +
		b.Arg(fmt.Sprintf("process %d on %.100s", os.Getpid(), host)) + ", " + s.d.Now() + ", " + b.Arg(int64(0)) + ")"
	if _, err := s.pool.ExecContext(ctx, query, b.Args()...); err != nil {
		return s.fail("write to the table "+s.name(marker).String(), err)
	}
	return nil
}

// sayAlive counts beats in the marker until ctx ends or silent is called.
func (s *site) sayAlive(ctx context.Context) (silent func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause(ctx, beat) == nil {
			// One that fails is made up for by the next one.
			_, _ = s.pool.ExecContext(ctx, "UPDATE "+s.quoted(marker)+" SET beats = beats + 1")
		}
	}()
	return func() { cancel(); <-ended }
}

// fill makes a table of so many rows, with the ids from 1.
func (r *run) fill(ctx context.Context, table string, rows int) error {
	r.doing(fmt.Sprintf("filling %s with %d rows", r.name(table), rows),
		r.bulk(1)*time.Duration(rows)/time.Duration(r.Rows))
	doing, t := "fill the table "+r.name(table).String(), r.quoted(table)
	statements := []string{
		fmt.Sprintf("CREATE TABLE %s (id %s NOT NULL PRIMARY KEY, payload varchar(%d) NOT NULL)",
			t, r.flavour.key, r.Payload),
		fmt.Sprintf("INSERT INTO %s (id, payload) VALUES (1, '%s')", t, text(0, r.Payload)),
	}
	for have := 1; have < rows; {
		n := min(have, fillBatch, rows-have)
		statements = append(statements,
			fmt.Sprintf("INSERT INTO %s (id, payload) SELECT id + %d, payload FROM %s WHERE id <= %d", t, have, t, n))
		have += n
	}
	if r.flavour.analyze != "" {
		statements = append(statements, fmt.Sprintf(r.flavour.analyze, t))
	}
	for _, query := range statements {
		if err := r.exec(ctx, doing, query); err != nil {
			return err
		}
	}
	return nil
}

// text is a payload of so many bytes; those of different starts differ.
func text(start, size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte('a' + (start+i)%26)
	}
	return string(b)
}

// thing is something that a run has made.
type thing struct{ kind, name string }

// things are what there is with a prefix, in the order in which it is to be dropped: a
// function after the tables whose triggers call it, the marker last.
func (s *site) things(ctx context.Context, prefix string) (all []thing, err error) {
	var last []thing
	for _, list := range []struct{ kind, query string }{
		{"TABLE", s.flavour.tables},
		{"FUNCTION", s.flavour.functions},
	} {
		if list.query == "" {
			continue
		}
		names, err := dialect.QueryAll(ctx, dialect.On(s.pool), list.query, []any{s.schema},
			func(rows dialect.Rows) (name string, err error) {
				return name, rows.Scan(&name)
			})
		if err != nil {
			return nil, s.fail("list tables", err)
		}
		for _, name := range names {
			switch {
			case name == prefix+marker:
				last = append(last, thing{list.kind, name})
			case strings.HasPrefix(name, prefix):
				all = append(all, thing{list.kind, name})
			}
		}
	}
	return append(all, last...), nil
}

// remove drops everything of the run, until the database says that nothing is left.
func (s *site) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removal)
	defer cancel()
	var failed error
	for tries := 5; ; {
		busy := s.busy(ctx) // asked first: what is at work may be a table that comes
		all, err := s.things(ctx, s.prefix)
		if err == nil && busy == nil && len(all) == 0 {
			return nil
		}
		if tries == 0 || ctx.Err() != nil {
			return s.left(all, err, cmp.Or(failed, err, busy))
		}
		failed = err
		for _, t := range all {
			if t.name == s.prefix+marker && (failed != nil || busy != nil) {
				break // it says whose the others are
			}
			failed = cmp.Or(s.drop(ctx, t), failed)
		}
		if failed != nil {
			tries--
		}
		if failed != nil || busy != nil {
			_ = pause(ctx, removalPause) // the next look tells
		}
	}
}

// busy is an error while a statement about the run's tables goes on.
func (s *site) busy(ctx context.Context) error {
	if s.flavour.busy == "" {
		return nil
	}
	var n int
	if err := s.pool.QueryRowContext(ctx, s.flavour.busy, s.prefix).Scan(&n); err != nil {
		return s.fail("ask which statements are at work", err)
	}
	if n > 0 {
		return fmt.Errorf("%d statements about its tables are still at work", n)
	}
	return nil
}

func (s *site) drop(ctx context.Context, t thing) error {
	ctx, cancel := context.WithTimeout(ctx, dropping)
	defer cancel()
	_, err := s.pool.ExecContext(ctx,
		"DROP "+t.kind+" "+dialect.Qualified(s.d, feedtype.TableName{Schema: s.schema, Name: t.name}))
	return err
}

// LeftError is that of a run that could not remove what it has made.
type LeftError struct{ reason *rowfeed.Error }

func (e *LeftError) Error() string { return e.reason.Error() }

// Unwrap gives the error with its code.
func (e *LeftError) Unwrap() error { return e.reason }

func (s *site) left(all []thing, unknown, failed error) error {
	what := "everything whose name begins with " + s.prefix
	if unknown == nil {
		names := make([]string, len(all))
		for i, t := range all {
			names[i] = strings.ToLower(t.kind) + " " + t.name
		}
		what = strings.Join(names, ", ")
	}
	return &LeftError{&rowfeed.Error{Code: rowfeed.Failed, Object: s.object(),
		Cause: "what the bench has made could not be removed, and is left: " + what, Err: failed,
		Next: "run `rowfeed bench --clean` with the same --db and --schema when nothing is in the way"}}
}

// pause waits, or answers the context's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func contextError(err error) error {
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}
