package conform

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// rest reads on from a cursor to the head, and answers an error where something comes that had
// its place at or below a position.
func (p *probe) nothingOld(ctx context.Context, cursor, position string) error {
	page, err := p.fetch(ctx, p.with("after", cursor))
	if err != nil {
		return err
	}
	for _, e := range page.Entries {
		if !above(e.Position, position) {
			return fmt.Errorf("behind the cursor %q comes position %s, which is below", cursor, e.Position)
		}
	}
	return nil
}

// ends reads to the head as of now, and answers the highest position that was seen.
func (p *probe) ends(ctx context.Context) (cursor, highest string, err error) {
	all, cursor, ended, err := p.beginning(ctx, 1)
	if err != nil {
		return "", "", err
	}
	highest = all[len(all)-1].Position
	if ended {
		return cursor, highest, nil
	}
	page, err := p.fetch(ctx, p.with("after", "now"))
	if err != nil {
		return "", "", err
	}
	return *page.Cursor, highest, nil
}

// beyond is a cursor above every position that the feed can have given, of a generation.
func (p *probe) beyond(generation int64) string {
	position := strconv.FormatInt(1<<63-1, 10)
	if p.info.ShardIDs != nil {
		position = "7" + strings.Repeat("Z", 25)
	}
	if generation != 1 {
		position = strconv.FormatInt(generation, 10) + ":" + position
	}
	return position
}

// refused wants a 409, or of a replica an empty page, which may be behind what the cursor knows.
func (p *probe) refused(ctx context.Context, after, code string) error {
	err := p.problem(ctx, wish{path: p.fetchPath(), query: p.with("after", after), status: 409, code: code})
	if err == nil {
		return nil
	}
	if page, paged := p.fetch(ctx, p.with("after", after)); paged == nil && len(page.Entries) == 0 &&
		*page.Cursor == after {
		return nil
	}
	return err
}

// beginsAtTime asks for what was published since a time to come, and since a time long ago.
func beginsAtTime(ctx context.Context, p *probe) error {
	page, err := p.fetch(ctx, p.with("after", "at:"+time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339)))
	if err != nil {
		return err
	}
	if len(page.Entries) > 0 {
		return fmt.Errorf("a time to come has %d entries", len(page.Entries))
	}
	first, _, _, err := p.beginning(ctx, 1)
	if err != nil {
		return err
	}
	page, err = p.fetch(ctx, p.with("after", "at:1990-01-01T00:00:00Z"))
	if err != nil {
		return err
	}
	if len(page.Entries) == 0 || above(page.Entries[0].Position, first[0].Position) {
		return fmt.Errorf("a time long ago leaves out position %s", first[0].Position)
	}
	return nil
}

func ofCursors() []check {
	return []check{
		{"3.1", "A missing `after`, an empty one and `0` MUST all mean the beginning.",
			func(ctx context.Context, p *probe) error {
				for _, after := range []string{"", "0"} {
					err := p.compared(ctx, func(upto string) ([]entry, error) {
						all, _, _, err := p.window(ctx, p.with("after", after), 500, upto)
						return all, err
					})
					if err != nil {
						return fmt.Errorf("after=%s: %w", after, err)
					}
				}
				return nil
			}},
		{"3.2", "A cursor MUST NOT go back: behind the cursor of a page, also of an empty one, " +
			"nothing comes that has its place at or below what was shown.", func(ctx context.Context, p *probe) error {
			cursor, highest, err := p.ends(ctx)
			for range 3 {
				if err != nil {
					return err
				}
				if err = p.nothingOld(ctx, cursor, highest); err != nil {
					return err
				}
				page, err := p.fetch(ctx, p.with("after", cursor))
				if err != nil {
					return err
				}
				cursor = *page.Cursor
			}
			return err
		}},
		{"3.3", "`after=now` MUST answer an empty page, whose cursor stands behind everything that was there.",
			func(ctx context.Context, p *probe) error {
				_, highest, err := p.ends(ctx)
				if err != nil {
					return err
				}
				page, err := p.fetch(ctx, p.with("after", "now"))
				if err != nil {
					return err
				}
				if len(page.Entries) > 0 {
					return fmt.Errorf("it has %d entries", len(page.Entries))
				}
				return p.nothingOld(ctx, *page.Cursor, highest)
			}},
		{"3.4", "`after=at:` with an RFC 3339 time MUST leave out what was published before it, " +
			"and nothing else.", beginsAtTime},
		{"3.5", "A cursor ahead of the feed MUST be refused with 409 and the code cursor-ahead; a replica, which may " +
			"lag, answers it with an empty page and the same cursor.", func(ctx context.Context, p *probe) error {
			return p.refused(ctx, p.beyond(p.info.Generation), "cursor-ahead")
		}},
		{"3.6", "A cursor of another generation MUST be refused with 409 and the code generation-changed; " +
			"by a replica it may be answered like one ahead.", func(ctx context.Context, p *probe) error {
			return p.refused(ctx,
				strings.Replace(p.beyond(p.info.Generation+1), strconv.FormatInt(1<<63-1, 10), "1", 1),
				"generation-changed")
		}},
		{"3.7", "What is no cursor MUST be refused with 400 and the parameter after.",
			func(ctx context.Context, p *probe) error {
				for _, after := range []string{"x", "-1", "at:noon", "1@", "9223372036854775808"} {
					if err := p.problem(ctx, wish{
						path: p.fetchPath(), query: p.with("after", after), status: 400, code: "invalid-request",
						parameter: "after",
					}); err != nil {
						return err
					}
				}
				return nil
			}},
	}
}
