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

// longestFailure is the maximum length of a stored error, in characters.
const longestFailure = 1000

// NotesFailure tells whether to store a failed attempt. Of fast attempts it selects those at which the number of
// attempts has doubled. Others are stored if the next attempt is at least a second away, or if there is no next one.
func NotesFailure(attempts int, pause time.Duration) bool {
	return bits.OnesCount(uint(attempts)) == 1 || pause >= time.Second || pause == 0
}

// Micros returns a duration as an argument of a statement: microseconds, and NULL for 0.
func Micros(d time.Duration) any {
	if d <= 0 {
		return dialect.SQL("NULL")
	}
	return d.Microseconds()
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

// FailureScan has the columns of a failure as they are scanned. They are stored with a cursor or with a feed.
type FailureScan struct {
	text                  sql.NullString
	since, attempts, next sql.NullInt64
}

// Into returns where to scan failure, failing_since, attempts and next_try.
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
