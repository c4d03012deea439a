package protocoltest

import (
	"context"
	"fmt"
	"time"
)

func waitChecks() []check {
	return []check{
		{"5.1", "`wait` at the head MUST hold the request until there is an entry or the time is over; before that " +
			"the server sends nothing, not even the status.", func(ctx context.Context, f *feed) error {
			now, err := f.fetch(ctx, f.with("after", "now"))
			if err != nil {
				return err
			}
			for cursor := *now.Cursor; ; {
				page, err := f.fetch(ctx, f.with("after", cursor, "wait", f.hold.String()))
				switch {
				case err != nil:
					return err
				case len(page.Entries) == 0 && !*page.More && *page.Cursor == cursor:
					if page.took < f.hold*2/3 {
						return fmt.Errorf("the answer began after %s of %s", page.took.Round(time.Millisecond), f.hold)
					}
					return nil
				case cursor == *page.Cursor:
					return fmt.Errorf("the cursor %q did not move behind %d entries", cursor, len(page.Entries))
				case ctx.Err() != nil:
					return ctx.Err()
				case len(page.Entries) > 0:
					return nil // a writer has written meanwhile
				}
				cursor = *page.Cursor
			}
		}},
		{"5.2", "A page that has entries MUST NOT wait.", func(ctx context.Context, f *feed) error {
			if _, _, _, err := f.beginning(ctx, 1); err != nil {
				return err
			}
			patient, cancel := context.WithTimeout(ctx, f.patience)
			defer cancel()
			_, err := f.fetch(patient, f.with("limit", "1", "wait", "1m"))
			if patient.Err() != nil && ctx.Err() == nil {
				err = fmt.Errorf("the response has not begun after %s", f.patience)
			}
			return err
		}},
	}
}
