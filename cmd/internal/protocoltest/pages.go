package protocoltest

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
)

// sameWithAnyLimit reads the feed in small pages and compares it with the feed read in large ones.
func sameWithAnyLimit(ctx context.Context, f *feed) error {
	for _, limit := range []int{1, 7} {
		err := f.compared(ctx, func(upto string) ([]entry, error) {
			first, _, _, err := f.readTo(ctx, nil, 500, upto)
			if err != nil || len(first) > 100*limit { // 100 pages are enough
				upto = first[min(len(first), 100*limit)-1].Position
			}
			some, _, _, err := f.readTo(ctx, nil, limit, upto)
			for _, e := range first { // the rest is taken from the large pages
				if above(e.Position, upto) {
					some = append(some, e)
				}
			}
			return some, err
		})
		if err != nil {
			return fmt.Errorf("limit %d: %w", limit, err)
		}
	}
	return nil
}

func pageChecks() []check {
	return []check{
		{"2.1", "A page MUST be a JSON object with feed, entries, cursor, more and base64, sent as application/json; " +
			"its cursor is a string, never null.", func(ctx context.Context, f *feed) error {
			page, err := f.fetch(ctx, f.with("limit", "10"))
			if err == nil && *page.Feed != f.name {
				err = fmt.Errorf("the page is of feed %q", *page.Feed)
			}
			return err
		}},
		{"2.2", "An entry MUST have a position, a shard, the key, and an op that is upsert or delete; " +
			"an upsert has the row, a delete has none.", func(ctx context.Context, f *feed) error {
			all, _, _, err := f.beginning(ctx, 1)
			if err != nil {
				return err
			}
			for _, e := range all {
				switch {
				case e.Position == "" || e.Shard == nil || !bytes.HasPrefix(e.Key, []byte("{")) ||
					bytes.Equal(e.Key, []byte("{}")):
					return fmt.Errorf("position %q: position, shard or key is missing", e.Position)
				case e.Op != "upsert" && e.Op != "delete":
					return fmt.Errorf("position %s: op %q", e.Position, e.Op)
				case (e.Op == "upsert") != bytes.HasPrefix(e.Row, []byte("{")):
					return fmt.Errorf("position %s: %s with row %.100s", e.Position, e.Op, e.Row)
				}
			}
			return nil
		}},
		{"2.3", "Positions MUST increase on a page, and from each page to the next.",
			func(ctx context.Context, f *feed) error {
				_, _, _, err := f.beginning(ctx, 1)
				return err
			}},
		{"2.4", "A page MUST have no more entries than limit asks for, and 100 if limit is missing.",
			func(ctx context.Context, f *feed) error {
				for _, limit := range []string{"1", "7", ""} {
					query, most := f.with("limit", limit), 100
					if limit == "" {
						query.Del("limit")
					} else {
						most, _ = strconv.Atoi(limit) // written above
					}
					page, err := f.fetch(ctx, query)
					if err != nil {
						return err
					}
					if len(page.Entries) > most {
						return fmt.Errorf("%d entries with limit %q", len(page.Entries), limit)
					}
				}
				return nil
			}},
		{"2.5", "Read page by page with any limit, a feed MUST show the same entries: no entry is left out between " +
			"two pages.",
			sameWithAnyLimit},
		{"2.6", "`more` MUST be true if entries follow the page, and false if the page reached the head.",
			func(ctx context.Context, f *feed) error {
				all, cursor, ended, err := f.beginning(ctx, 2)
				if err != nil {
					return err
				}
				page, err := f.fetch(ctx, f.with("limit", "1"))
				if err != nil {
					return err
				}
				if !*page.More {
					return fmt.Errorf("the page with the first of %d entries has more false", len(all))
				}
				if !ended {
					return nil
				}
				page, err = f.fetch(ctx, f.with("after", cursor))
				if err == nil && len(page.Entries) == 0 && *page.More {
					err = fmt.Errorf("the page at the head has more true")
				}
				return err
			}},
	}
}
