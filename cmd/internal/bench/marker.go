package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

// heartbeat is how often a run counts up the beats of its marker. Clean waits for the next beat.
const heartbeat = 2 * time.Second

// createMarker makes the table in which the run describes itself.
func (t *tables) createMarker(ctx context.Context) error {
	doing := "create the table " + t.name(marker).String()
	if err := t.db.exec(ctx, doing, "CREATE TABLE "+t.quoted(marker)+" (id bigint NOT NULL PRIMARY KEY, "+
		"owner varchar(200) NOT NULL, began_at bigint NOT NULL, beats bigint NOT NULL)"); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	b := dialect.NewBuilder(t.db.dialect.Syntax)
	query := "INSERT INTO " + t.quoted(marker) + " (id, owner, began_at, beats) VALUES (1, " +
		b.Arg(fmt.Sprintf("process %d on %.100s", os.Getpid(), host)) + ", " + t.db.dialect.Now + ", " +
		b.Arg(int64(0)) + ")"
	if _, err := t.db.pool.ExecContext(ctx, query, b.Args()...); err != nil {
		return t.db.explain("write to the table "+t.name(marker).String(), err)
	}
	return nil
}

// startHeartbeat counts up the marker's beats until ctx ends or stop is called.
func (t *tables) startHeartbeat(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for pause(ctx, heartbeat) == nil {
			// A beat that fails does no harm: the next one follows soon.
			_, _ = t.db.pool.ExecContext(ctx, "UPDATE "+t.quoted(marker)+" SET beats = beats + 1")
		}
	}()
	return func() { cancel(); <-ended }
}

// markerRow is the row of a marker. Its beats are -1 in a marker without a row.
type markerRow struct {
	owner        string
	began, beats int64
}

// readMarker returns false if there is no marker, or a table of its name with other columns.
func (t *tables) readMarker(ctx context.Context) (row markerRow, found bool, err error) {
	rows, err := dialect.QueryAll(ctx, dialect.On(t.db.pool), "SELECT owner, began_at, beats FROM "+
		t.quoted(marker), nil, func(rows dialect.Rows) (r markerRow, err error) {
		return r, rows.Scan(&r.owner, &r.began, &r.beats)
	})
	switch {
	case t.db.dialect.Classify(err) == dialect.ClassUndefined:
		return row, false, nil
	case err != nil:
		return row, false, t.db.explain("read the table "+t.name(marker).String(), err)
	case len(rows) == 0: // its run was killed at the first step, or is at the first step now
		return markerRow{beats: -1}, true, nil
	}
	return rows[0], true, nil
}

// pause waits, and returns the error of ctx if ctx ends first.
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
