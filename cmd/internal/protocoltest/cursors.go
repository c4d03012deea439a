package protocoltest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// nothingOld reads the page after a cursor, and returns an error if it has an entry at or below a position.
func (f *feed) nothingOld(ctx context.Context, cursor, position string) error {
	page, err := f.fetch(ctx, f.with("after", cursor))
	if err != nil {
		return err
	}
	for _, e := range page.Entries {
		if !above(e.Position, position) {
			return fmt.Errorf("the page after the cursor %q has position %s, which is not above %s",
				cursor, e.Position, position)
		}
	}
	return nil
}

// readEnd reads to the head, or as much as Options allow. It returns a cursor at the head, and the highest
// position that it has read.
func (f *feed) readEnd(ctx context.Context) (cursor, highest string, err error) {
	all, cursor, ended, err := f.beginning(ctx, 1)
	if err != nil {
		return "", "", err
	}
	highest = all[len(all)-1].Position
	if ended {
		return cursor, highest, nil
	}
	page, err := f.fetch(ctx, f.with("after", "now"))
	if err != nil {
		return "", "", err
	}
	return *page.Cursor, highest, nil
}

// cursorAhead returns a cursor of a generation, above every position that the feed can have.
func (f *feed) cursorAhead(generation int64) string {
	position := strconv.FormatInt(1<<63-1, 10)
	if f.info.ShardIDs != nil {
		position = "7" + strings.Repeat("Z", 25)
	}
	if generation != 1 {
		position = strconv.FormatInt(generation, 10) + ":" + position
	}
	return position
}

// refused expects a 409. A replica may instead answer with an empty page and the same cursor, since it may lag.
func (f *feed) refused(ctx context.Context, after, code string) error {
	err := f.problem(ctx, expected{path: f.fetchPath(), query: f.with("after", after), status: 409, code: code})
	if err == nil {
		return nil
	}
	if page, paged := f.fetch(ctx, f.with("after", after)); paged == nil && len(page.Entries) == 0 &&
		*page.Cursor == after {
		return nil
	}
	return err
}

// refusesLostHistory sends a cursor of the feed with another term, and with a head that the feed has not reached.
func refusesLostHistory(ctx context.Context, f *feed) error {
	page, err := f.fetch(ctx, f.with("after", "now"))
	if err != nil {
		return err
	}
	place, term, ok := strings.Cut(*page.Cursor, ".")
	if !ok {
		return untried("the cursors of this feed have no terms")
	}
	place, _, _ = strings.Cut(place, "~")
	unknown := "1000000000"
	if term == unknown {
		unknown = "1000000001"
	}
	for _, after := range []string{place + "." + unknown, fmt.Sprintf("%s~%d.%s", place, int64(1<<63-1), term)} {
		err := f.refused(ctx, after, "history-lost")
		if err == nil {
			continue
		}
		if f.problem(ctx, expected{path: f.fetchPath(), query: f.with("after", after), status: 503,
			code: "unavailable"}) != nil {
			return err
		}
	}
	return nil
}

// beginsAtTime asks for what was published since a time in the future, and since a time long ago.
func beginsAtTime(ctx context.Context, f *feed) error {
	page, err := f.fetch(ctx, f.with("after", "at:"+time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339)))
	if err != nil {
		return err
	}
	if len(page.Entries) > 0 {
		return fmt.Errorf("a time in the future has %d entries", len(page.Entries))
	}
	first, _, _, err := f.beginning(ctx, 1)
	if err != nil {
		return err
	}
	page, err = f.fetch(ctx, f.with("after", "at:1990-01-01T00:00:00Z"))
	if err != nil {
		return err
	}
	if len(page.Entries) == 0 || above(page.Entries[0].Position, first[0].Position) {
		return fmt.Errorf("a time long ago leaves out position %s", first[0].Position)
	}
	return nil
}

func cursorChecks() []check {
	return []check{
		{"3.1", "A missing `after`, an empty one and `0` MUST all mean the beginning.",
			func(ctx context.Context, f *feed) error {
				for _, after := range []string{"", "0"} {
					err := f.compared(ctx, func(upto string) ([]entry, error) {
						all, _, _, err := f.readTo(ctx, f.with("after", after), 500, upto)
						return all, err
					})
					if err != nil {
						return fmt.Errorf("after=%s: %w", after, err)
					}
				}
				return nil
			}},
		{"3.2", "A cursor MUST NOT go back: no page after the cursor of a page, also of an empty page, has an entry " +
			"at or below a position that was already shown.", func(ctx context.Context, f *feed) error {
			cursor, highest, err := f.readEnd(ctx)
			for range 3 {
				if err != nil {
					return err
				}
				if err = f.nothingOld(ctx, cursor, highest); err != nil {
					return err
				}
				page, err := f.fetch(ctx, f.with("after", cursor))
				if err != nil {
					return err
				}
				cursor = *page.Cursor
			}
			return err
		}},
		{"3.3", "`after=now` MUST return an empty page, whose cursor is behind all entries of that moment.",
			func(ctx context.Context, f *feed) error {
				_, highest, err := f.readEnd(ctx)
				if err != nil {
					return err
				}
				page, err := f.fetch(ctx, f.with("after", "now"))
				if err != nil {
					return err
				}
				if len(page.Entries) > 0 {
					return fmt.Errorf("it has %d entries", len(page.Entries))
				}
				return f.nothingOld(ctx, *page.Cursor, highest)
			}},
		{"3.4", "`after=at:` with an RFC 3339 time MUST leave out what was published before it, " +
			"and nothing else.", beginsAtTime},
		{"3.5", "A cursor ahead of the feed MUST be refused with 409 and the code cursor-ahead; a replica, which may " +
			"lag, returns an empty page with the same cursor.", func(ctx context.Context, f *feed) error {
			return f.refused(ctx, f.cursorAhead(f.info.Generation), "cursor-ahead")
		}},
		{"3.6", "A cursor of another generation MUST be refused with 409 and the code generation-changed; a replica " +
			"may treat it like a cursor ahead of the feed.", func(ctx context.Context, f *feed) error {
			return f.refused(ctx,
				strings.Replace(f.cursorAhead(f.info.Generation+1), strconv.FormatInt(1<<63-1, 10), "1", 1),
				"generation-changed")
		}},
		{"3.7", "An invalid cursor MUST be refused with 400 and the parameter after.",
			func(ctx context.Context, f *feed) error {
				for _, after := range []string{"x", "-1", "at:noon", "1@", "1.", "9223372036854775808"} {
					if err := f.problem(ctx, expected{
						path: f.fetchPath(), query: f.with("after", after), status: 400, code: "invalid-request",
						parameter: "after",
					}); err != nil {
						return err
					}
				}
				return nil
			}},
		{"3.8", "A cursor of a term that the feed does not know, or of a head that the feed did not reach in that " +
			"term, MUST be refused with 409 and the code history-lost; a replica, which may lag, returns an empty " +
			"page with the same cursor, or 503 with the code unavailable.", refusesLostHistory},
	}
}
