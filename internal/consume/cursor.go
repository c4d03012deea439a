package consume

import (
	"context"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// cursorState is what this run knows of its shard's cursor.
type cursorState struct {
	*assignment
	// row is the cursor as this run last read or wrote it. It is nil if it has to be read, as after
	// every error: only the database knows whether a failed COMMIT took effect.
	row    *CursorRow
	readAt time.Time // when row was read
	// version is the version of row. It is kept when row becomes nil.
	version int64
	// releases means that an operator may have asked for the release of a dead letter. The query for
	// the dead letters of a batch notices that too.
	releases bool
	// attempts counts failed attempts since the last success, those of earlier runs included. failure says
	// that a failure is stored.
	attempts int
	failure  bool
}

// known notes a row that was read from the database.
func (s *cursorState) known(row *CursorRow) {
	s.row, s.version, s.readAt, s.releases = row, row.version, time.Now(), true
	if s.failure = row.Failure != nil; s.failure {
		s.attempts = max(s.attempts, row.Failure.Attempts)
	}
}

// stored notes the row that a committed transaction has left. With nil the database has to be asked.
func (s *cursorState) stored(row *CursorRow) {
	if s.row = row; row != nil {
		s.version = row.version
	}
}

// load reads the cursor of the shard. A missing cursor means that the consumer was dropped, so it is created again.
// Another shard count means that another instance has changed it, which is an error.
func (s *cursorState) load(ctx context.Context) (*CursorRow, error) {
	db := s.db
	for made := false; ; made = true {
		row, err := db.cursorOf(ctx, db.Store.On(), s.c.Name, s.feed, s.shard)
		switch {
		case err != nil:
			return nil, err
		case row != nil && row.ShardCount != s.count:
			return nil, s.shardCountChanged(row.ShardCount)
		case row != nil:
			return row, nil
		case made: // and dropped again
			return nil, errOvertaken
		}
		if err := s.open(ctx, false); err != nil {
			return nil, err
		}
	}
}

// claim raises the epoch of the cursor to that of the lease before any page is read. From then on the holder of an
// earlier lease cannot write the cursor.
func (s *cursorState) claim(ctx context.Context, row *CursorRow) (*CursorRow, error) {
	db, epoch := s.db, s.epoch
	if epoch > row.Epoch {
		err := db.Store.InTx(ctx, dialect.ForRecord, "claim a cursor", func(tx dialect.Querier) error {
			args := rowArgs(row.Consumer, row.Feed, row.Shard)
			args["shard_count"], args["epoch"] = row.ShardCount, epoch
			_, err := db.exec(ctx, tx, "claim", args)
			return err
		})
		if err != nil {
			return nil, err
		}
		if row, err = s.load(ctx); err != nil {
			return nil, err
		}
	}
	if epoch != 0 && row.Epoch > epoch {
		return nil, s.fail(feedtype.LeaseLost, fmt.Sprintf("the lease with epoch %d is over: the cursor is held "+
			"under epoch %d", epoch, row.Epoch), "acquire the lease again")
	}
	return row, nil
}

// wasChanged reports whether an operator has moved or paused the cursor of a shard that rests, or asked for the
// release of a dead letter. A changed shard count is an error: other instances wait for the leases of this one.
func (s *cursorState) wasChanged(ctx context.Context) (bool, error) {
	row, err := s.load(ctx)
	switch {
	case err != nil:
		return false, err
	case row.version != s.version:
		return true, nil
	case row.Aside == 0 || !row.Value.Settled():
		return false, nil
	}
	args := rowArgs(s.c.Name, s.feed, s.shard)
	args["state"] = feedtype.LetterRetry
	var releases int
	err = s.db.Store.One(ctx, s.db.Store.On(), statements, "letters_in_state", args, &releases)
	return releases > 0, err
}

// failed counts a failed attempt, and stores it with the cursor (see store.NotesFailure, or always if rests is set).
// pause is the time until the next attempt; 0 means that this run ends. If the cursor has moved, another instance works
// on it: then it stores nothing and reports moved.
func (s *cursorState) failed(ctx context.Context, why error, pause time.Duration, rests bool) (moved bool) {
	s.attempts++
	if s.feed == "" || !rests && !store.NotesFailure(s.attempts, pause) {
		return false
	}
	// The database may be what fails. The next attempt must not wait for it.
	ctx, stop := context.WithTimeout(ctx, noteTimeout)
	defer stop()
	db, text := s.db, store.FailureText(why, s.object())
	q, version := db.Store.On(), s.version
	if version == 0 { // this run has not read the cursor yet
		row, err := db.cursorOf(ctx, q, s.c.Name, s.feed, s.shard)
		if err != nil || row == nil {
			return false
		}
		version = row.version
	}
	name, args := "failed", rowArgs(s.c.Name, s.feed, s.shard)
	args["failure"], args["attempts"], args["pause"] = text, s.attempts, store.Micros(pause)
	args["shard_count"], args["version"] = s.count, version
	if s.epoch != 0 {
		name, args["epoch"] = "failed_under_lease", s.epoch
	}
	n, err := db.exec(ctx, q, name, args)
	if err == nil && n == 1 {
		s.failure = true
	}
	return err == nil && n == 0
}

// noteTimeout limits how long a failed attempt waits until its error is stored.
const noteTimeout = 2 * time.Second

// recovered ends a failure after a success. It sends a statement only if a failure is stored. cleared says that the
// commit of the success has removed it.
func (s *cursorState) recovered(ctx context.Context, cleared bool) error {
	if s.attempts == 0 && !s.failure {
		return nil
	}
	if s.failure && !cleared {
		args := rowArgs(s.c.Name, s.feed, s.shard)
		args["version"] = s.version
		if _, err := s.db.exec(ctx, s.db.Store.On(), "recovered", args); err != nil {
			return err
		}
	}
	s.db.Store.Observer.Recovered(feedtype.RecoveredEvent{Feed: s.feed, Consumer: s.c.Name, Shard: max(s.shard, 0),
		ShardCount: s.count, Attempts: s.attempts})
	s.attempts, s.failure = 0, false
	return nil
}

// tellTarget stores where a relay delivers, if the cursor does not say so yet.
func (s *cursorState) tellTarget(ctx context.Context) error {
	if s.c.Target == "" || s.row.Target == s.c.Target {
		return nil
	}
	args := rowArgs(s.c.Name, s.feed, s.row.Shard)
	args["target"] = s.c.Target
	_, err := s.db.exec(ctx, s.db.Store.On(), "target", args)
	return err
}
