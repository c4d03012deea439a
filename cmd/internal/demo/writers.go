package demo

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"golang.org/x/time/rate"
)

const (
	writerCount = 4
	// fullTable is the number of rows from which on inserts become deletes.
	fullTable = 200
	// spacePrefix marks the demo's own rows. A table kv with other rows belongs to a user.
	spacePrefix = "demo-"
)

var (
	spaces = []string{"colours", "fruit", "towns"}
	words  = []string{"amber", "birch", "cedar", "dill", "elder", "fern", "ginger", "hazel", "iris", "juniper", "kale",
		"lime"}
)

// flavour has the SQL of a database for the table and for unusual writes.
type flavour struct {
	table string
	// replace replaces a row by a new one with the same ns and k, and another id. SQLite deletes the old row without
	// firing its DELETE trigger.
	replace string
	// moves means that replace changes the row's id.
	moves bool
}

// flavourOf is keyed by the dialect's name. The demo is an application with SQL of its own.
var flavourOf = map[string]flavour{
	"sqlite": {
		table:   "id INTEGER PRIMARY KEY, ns TEXT NOT NULL, k TEXT NOT NULL, v TEXT, UNIQUE (ns, k)",
		replace: "INSERT OR REPLACE INTO kv (id, ns, k, v) SELECT %s, ns, k, %s FROM kv WHERE id = %s",
		moves:   true,
	},
	"postgres": {
		table: "id bigint PRIMARY KEY, ns text NOT NULL, k text NOT NULL, v text, UNIQUE (ns, k)",
		replace: "INSERT INTO kv (id, ns, k, v) SELECT CAST(%s AS bigint), ns, k, " +
			"CAST(%s AS text) FROM kv WHERE id = %s ON CONFLICT (ns, k) DO UPDATE SET v = excluded.v",
	},
	"mysql": {
		table:   "id bigint PRIMARY KEY, ns varchar(100) NOT NULL, k varchar(100) NOT NULL, v text, UNIQUE (ns, k)",
		replace: "REPLACE INTO kv (id, ns, k, v) SELECT %s, ns, k, %s FROM kv WHERE id = %s",
		moves:   true,
	},
	"sqlserver": {
		table: "id bigint PRIMARY KEY, ns nvarchar(100) NOT NULL, k nvarchar(100) NOT NULL, v nvarchar(max), " +
			"UNIQUE (ns, k)",
		replace: "UPDATE kv SET id = %s, v = %s WHERE id = %s",
		moves:   true,
	},
}

// writers keep changing the table.
type writers struct {
	pool    *sql.DB
	d       *dialect.Dialect
	flavour flavour
	limiter *rate.Limiter
	wrote   func(int64)

	mu     sync.Mutex
	ids    []int64 // rows that no writer is changing
	nextID int64
	counts map[string]int64
	total  int64
}

func newWriters(pool *sql.DB, d *dialect.Dialect, cfg Config) *writers {
	return &writers{pool: pool, d: d, flavour: flavourOf[d.Name], limiter: rate.NewLimiter(rate.Limit(cfg.Rate), 1),
		wrote: cfg.Wrote, counts: map[string]int64{}}
}

// prepare makes the table, or reuses that of an earlier demo.
func (w *writers) prepare(ctx context.Context, url string) error {
	_, err := w.d.Describe(ctx, dialect.On(w.pool), feedtype.TableName{Name: Feed})
	switch {
	case err != nil && w.d.Classify(err) != dialect.ClassUndefined:
		return fmt.Errorf("demo: search for a table kv: %w", err)
	case err != nil:
		if _, err := w.pool.ExecContext(ctx, "CREATE TABLE kv ("+w.flavour.table+")"); err != nil {
			return fmt.Errorf("demo: create table kv: %w", err)
		}
		return nil
	}
	var strangers int64
	err = w.pool.QueryRowContext(ctx,
		"SELECT count(*) FROM kv WHERE ns NOT LIKE '"+spacePrefix+"%' OR (k IS NULL AND v IS NULL)").Scan(&strangers)
	if err != nil || strangers > 0 {
		return &rowfeed.Error{Code: rowfeed.Refused, Object: "database " + open.Redact(url),
			Cause: "it has a table kv that the demo did not create",
			Next:  "leave --db out, or name a database without a table kv: the demo writes into that table"}
	}
	rows, err := w.pool.QueryContext(ctx, "SELECT id FROM kv")
	if err != nil {
		return fmt.Errorf("demo: read table kv: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return fmt.Errorf("demo: read table kv: %w", err)
		}
		w.ids = append(w.ids, id)
		w.nextID = max(w.nextID, id)
	}
	return rows.Err()
}

// run writes until ctx ends, or until a writer fails.
func (w *writers) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, writerCount)
	var group sync.WaitGroup
	for range writerCount {
		group.Go(func() {
			for w.limiter.Wait(ctx) == nil {
				// A write is not aborted, because its outcome must be known.
				if err := w.write(context.WithoutCancel(ctx)); err != nil {
					failed <- fmt.Errorf("demo: a writer failed: %w", err)
					cancel()
					return
				}
			}
		})
	}
	// Wait returns early if the deadline comes first.
	<-ctx.Done()
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// write does one random write. Meanwhile the row is not in ids.
func (w *writers) write(ctx context.Context) error {
	what, id := w.choose()
	back := []int64{id}
	value := fmt.Sprintf("%s %d", words[rand.N(len(words))], rand.N(1000))
	var err error
	switch what {
	case "inserts":
		space := spacePrefix + spaces[rand.N(len(spaces))]
		key := fmt.Sprintf("%s-%d", words[rand.N(len(words))], id)
		err = w.exec(ctx, "INSERT INTO kv (id, ns, k, v) VALUES (%s, %s, %s, %s)", id, space, key, value)
	case "updates":
		err = w.exec(ctx, "UPDATE kv SET v = %s WHERE id = %s", value, id)
	case "deletes":
		err = w.exec(ctx, "DELETE FROM kv WHERE id = %s", id)
		back = nil
	case "key changes":
		other := w.newID()
		err = w.exec(ctx, "UPDATE kv SET id = %s WHERE id = %s", other, id)
		back = []int64{other}
	case "replaces":
		other := w.newID()
		err = w.exec(ctx, w.flavour.replace, other, value, id)
		if w.flavour.moves {
			back = []int64{other}
		}
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.ids = append(w.ids, back...)
	w.counts[what]++
	w.total++
	total := w.total
	w.mu.Unlock()
	if w.wrote != nil {
		w.wrote(total)
	}
	return nil
}

// choose chooses the write, and removes its row from ids.
func (w *writers) choose() (what string, id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch dice := rand.N(100); {
	case dice < 35:
		what = "inserts"
	case dice < 70:
		what = "updates"
	case dice < 85:
		what = "deletes"
	case dice < 93:
		what = "key changes"
	default:
		what = "replaces"
	}
	if len(w.ids) > fullTable && what == "inserts" {
		what = "deletes"
	}
	if len(w.ids) == 0 || what == "inserts" {
		w.nextID++
		return "inserts", w.nextID
	}
	i, last := rand.N(len(w.ids)), len(w.ids)-1
	id = w.ids[i]
	w.ids[i] = w.ids[last]
	w.ids = w.ids[:last]
	return what, id
}

func (w *writers) newID() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nextID++
	return w.nextID
}

// exec runs a statement. Each %s in it is a parameter.
func (w *writers) exec(ctx context.Context, format string, args ...any) error {
	b := dialect.NewBuilder(w.d.Syntax)
	marks := make([]any, len(args))
	for i, v := range args {
		marks[i] = b.Arg(v)
	}
	_, err := w.pool.ExecContext(ctx, fmt.Sprintf(format, marks...), b.Args()...)
	return err
}

func (w *writers) summary() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%d writes (%d inserts, %d updates, %d deletes, %d key changes, %d replaces)", w.total,
		w.counts["inserts"], w.counts["updates"], w.counts["deletes"], w.counts["key changes"], w.counts["replaces"])
}
