package conform

import (
	"context"
	"fmt"
	"time"
)

func ofWaiting() []check {
	return []check{
		{"5.1", "`wait` at the head MUST hold the request until there is an entry, or its time is over; " +
			"before that nothing is sent, no status either.", func(ctx context.Context, p *probe) error {
			now, err := p.fetch(ctx, p.with("after", "now"))
			if err != nil {
				return err
			}
			for cursor := *now.Cursor; ; {
				page, err := p.fetch(ctx, p.with("after", cursor, "wait", p.hold.String()))
				switch {
				case err != nil:
					return err
				case len(page.Entries) == 0 && !*page.More && *page.Cursor == cursor:
					if page.took < p.hold*2/3 {
						return fmt.Errorf("the answer began after %s of %s", page.took.Round(time.Millisecond), p.hold)
					}
					return nil
				case cursor == *page.Cursor:
					return fmt.Errorf("the cursor %q did not move behind %d entries", cursor, len(page.Entries))
				case ctx.Err() != nil:
					return ctx.Err()
				case len(page.Entries) > 0:
					return nil // as somebody writes
				}
				cursor = *page.Cursor
			}
		}},
		{"5.2", "A page that has entries MUST NOT wait.", func(ctx context.Context, p *probe) error {
			if _, _, _, err := p.beginning(ctx, 1); err != nil {
				return err
			}
			patient, cancel := context.WithTimeout(ctx, p.patience)
			defer cancel()
			_, err := p.fetch(patient, p.with("limit", "1", "wait", "1m"))
			if patient.Err() != nil && ctx.Err() == nil {
				err = fmt.Errorf("it has not come after %s", p.patience)
			}
			return err
		}},
	}
}
