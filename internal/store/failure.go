package store

import (
	"database/sql"
	"errors"
	"math/bits"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Failures are stored in four columns, with a cursor or with a feed.
const (
	FailureColumns = "failure, failing_since, attempts, next_try"
	ClearFailure   = "failure = NULL, failing_since = NULL, attempts = NULL, next_try = NULL"
)

// longestFailure is the maximum length of a stored error, in characters.
const longestFailure = 1000

// NotesFailure tells whether to store a failed attempt. Of fast attempts it selects those at which the number of
// attempts has doubled. Others are stored if the next attempt is at least a second away, or if there is no next one.
func NotesFailure(attempts int, pause time.Duration) bool {
	return bits.OnesCount(uint(attempts)) == 1 || pause >= time.Second || pause == 0
}

// SetFailure returns the assignments that store a failed attempt. pause is the time until the next one; 0 means that
// there is none.
func (s *Store) SetFailure(b *dialect.Builder, text string, attempts int, pause time.Duration) string {
	now, next := s.Dialect.Now(), "NULL"
	set := "failure = " + b.Arg(text) + ", failing_since = COALESCE(failing_since, " + now + "), attempts = " +
		b.Arg(attempts)
	if pause > 0 {
		next = now + " + " + b.Arg(pause.Microseconds())
	}
	return set + ", next_try = " + next
}

// FailureText returns the text of an error as it is stored: valid UTF-8 of bounded length. It leaves out the object,
// which is the one whose row has the text. So one cause has the same text for all feeds and consumers.
func FailureText(err error, object string) string {
	var known *feedtype.Error
	if errors.As(err, &known) && err == error(known) && known.Object == object {
		bare := *known
		bare.Object = ""
		err = &bare
	}
	return ErrorText(err, longestFailure)
}

// ErrorText returns the text of an error as a database stores it: valid UTF-8 of at most so many characters.
func ErrorText(err error, most int) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return text
}

// FailureScan has the columns of a failure as they are scanned.
type FailureScan struct {
	text                  sql.NullString
	since, attempts, next sql.NullInt64
}

// Into returns where to scan FailureColumns.
func (f *FailureScan) Into() []any { return []any{&f.text, &f.since, &f.attempts, &f.next} }

// Failure returns the failure, or nil if there is none.
func (f *FailureScan) Failure() *feedtype.Failure {
	if f.text.String == "" {
		return nil
	}
	found := &feedtype.Failure{Error: f.text.String, Since: time.UnixMicro(f.since.Int64).UTC(),
		Attempts: int(f.attempts.Int64)}
	if f.next.Valid {
		found.NextTry = time.UnixMicro(f.next.Int64).UTC()
	}
	return found
}
