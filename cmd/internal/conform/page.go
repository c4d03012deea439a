package conform

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// entry is one of a page.
type entry struct {
	Position string          `json:"position"`
	Shard    *int64          `json:"shard"`
	Op       string          `json:"op"`
	Key      json.RawMessage `json:"key"`
	Row      json.RawMessage `json:"row"`
}

// page is the answer to a fetch.
type page struct {
	*answer
	Feed    *string   `json:"feed"`
	Entries []entry   `json:"entries"`
	Cursor  *string   `json:"cursor"`
	More    *bool     `json:"more"`
	Base64  *[]string `json:"base64"`
}

// fetch reads a page, of which everything must be there.
func (p *probe) fetch(ctx context.Context, query url.Values, header ...string) (*page, error) {
	a, err := p.ask(ctx, http.MethodGet, p.fetchPath(), query, append([]string{"Accept", jsonType}, header...)...)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK || a.mediaType() != jsonType {
		return nil, fmt.Errorf("?%s: status %d, Content-Type %q: %.200s",
			query.Encode(), a.status, a.header.Get("Content-Type"), a.body)
	}
	page := &page{answer: a}
	if err := json.Unmarshal(a.body, page); err != nil {
		return nil, fmt.Errorf("?%s: %w", query.Encode(), err)
	}
	for name, missing := range map[string]bool{
		"feed": page.Feed == nil, "entries": page.Entries == nil, "cursor": page.Cursor == nil,
		"more": page.More == nil, "base64": page.Base64 == nil,
	} {
		if missing {
			return nil, fmt.Errorf("?%s: %s is missing, or null", query.Encode(), name)
		}
	}
	return page, nil
}

// above orders positions: numbers, and ULIDs among themselves.
func above(a, b string) bool { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0 }

// window reads the feed from the beginning, pages of limit, as far as upto ("" is as far as the probe
// may). ended tells that it was read to its head.
func (p *probe) window(
	ctx context.Context, query url.Values, limit int, upto string,
) (all []entry, cursor string, ended bool, err error) {
	query = p.copyOf(query)
	query.Set("limit", strconv.Itoa(limit))
	for {
		page, err := p.fetch(ctx, query)
		if err != nil {
			return nil, "", false, err
		}
		for _, e := range page.Entries {
			if upto != "" && above(e.Position, upto) {
				return all, cursor, false, nil
			}
			if len(all) > 0 && !above(e.Position, all[len(all)-1].Position) {
				return nil, "", false, fmt.Errorf("position %s comes behind %s (after=%s)",
					e.Position, all[len(all)-1].Position, query.Get("after"))
			}
			all = append(all, e)
		}
		if cursor = *page.Cursor; !*page.More {
			return all, cursor, true, nil
		}
		if upto == "" && len(all) >= p.most {
			return all, cursor, false, nil
		}
		if cursor == query.Get("after") && len(page.Entries) == 0 {
			return nil, "", false, fmt.Errorf("the cursor %q leads to itself, with more true", cursor)
		}
		query.Set("after", cursor)
	}
}

func (p *probe) copyOf(query url.Values) url.Values {
	copied := p.with()
	for name, values := range query {
		copied[name] = slices.Clone(values)
	}
	return copied
}

// beginning is what the feed has first; untried where it has nothing.
func (p *probe) beginning(ctx context.Context, least int) (all []entry, cursor string, ended bool, err error) {
	all, cursor, ended, err = p.window(ctx, nil, 500, "")
	if err == nil && len(all) < least {
		err = untried(fmt.Sprintf("the feed has fewer than %d entries", least))
	}
	return all, cursor, ended, err
}

// same compares two readings of what the feed has up to a position, between which was reads of
// the same: what stood there before and after must have been there in between, and nothing else.
func same(before, between, after []entry) error {
	at := func(all []entry) map[string]bool {
		found := map[string]bool{}
		for _, e := range all {
			found[e.Position] = true
		}
		return found
	}
	was, in, is := at(before), at(between), at(after)
	if len(in) != len(between) {
		return fmt.Errorf("an entry came twice")
	}
	for position := range was {
		if is[position] && !in[position] {
			return fmt.Errorf("the entry at position %s is missing", position)
		}
	}
	for position := range in {
		if !was[position] && !is[position] {
			return fmt.Errorf("the entry at position %s is in no other reading", position)
		}
	}
	return nil
}

// compared reads the beginning, then what read brings, and then the beginning again.
func (p *probe) compared(ctx context.Context, read func(upto string) ([]entry, error)) error {
	before, _, _, err := p.beginning(ctx, 1)
	if err != nil {
		return err
	}
	upto := before[len(before)-1].Position
	between, err := read(upto)
	if err != nil {
		return err
	}
	after, _, _, err := p.window(ctx, nil, 500, upto)
	if err != nil {
		return err
	}
	return same(before, between, after)
}

// sameWithAnyLimit reads the feed in small pages and compares it with the feed read in large ones.
func sameWithAnyLimit(ctx context.Context, p *probe) error {
	for _, limit := range []int{1, 7} {
		err := p.compared(ctx, func(upto string) ([]entry, error) {
			first, _, _, err := p.window(ctx, nil, 500, upto)
			if err != nil || len(first) > 100*limit { // enough seams
				upto = first[min(len(first), 100*limit)-1].Position
			}
			some, _, _, err := p.window(ctx, nil, limit, upto)
			for _, e := range first { // what was read in one go stands for the rest
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

func ofPages() []check {
	return []check{
		{"2.1", "A page MUST be a JSON object with feed, entries, cursor, more and base64, sent as application/json; " +
			"its cursor is a string, never null.", func(ctx context.Context, p *probe) error {
			page, err := p.fetch(ctx, p.with("limit", "10"))
			if err == nil && *page.Feed != p.feed {
				err = fmt.Errorf("the page is of feed %q", *page.Feed)
			}
			return err
		}},
		{"2.2", "An entry MUST have a position, a shard, the key, and an op that is upsert or delete; " +
			"an upsert has the row, a delete has none.", func(ctx context.Context, p *probe) error {
			all, _, _, err := p.beginning(ctx, 1)
			if err != nil {
				return err
			}
			for _, e := range all {
				switch {
				case e.Position == "" || e.Shard == nil || !bytes.HasPrefix(e.Key, []byte("{")) ||
					bytes.Equal(e.Key, []byte("{}")):
					return fmt.Errorf("position %q: it is not whole", e.Position)
				case e.Op != "upsert" && e.Op != "delete":
					return fmt.Errorf("position %s: op %q", e.Position, e.Op)
				case (e.Op == "upsert") != bytes.HasPrefix(e.Row, []byte("{")):
					return fmt.Errorf("position %s: %s with row %.100s", e.Position, e.Op, e.Row)
				}
			}
			return nil
		}},
		{"2.3", "Positions MUST increase on a page, and from each page to the next.",
			func(ctx context.Context, p *probe) error {
				_, _, _, err := p.beginning(ctx, 1)
				return err
			}},
		{"2.4", "A page MUST have no more entries than limit asks for, and 100 where it is missing.",
			func(ctx context.Context, p *probe) error {
				for _, limit := range []string{"1", "7", ""} {
					query, most := p.with("limit", limit), 100
					if limit == "" {
						query.Del("limit")
					} else {
						most, _ = strconv.Atoi(limit) // written above
					}
					page, err := p.fetch(ctx, query)
					if err != nil {
						return err
					}
					if len(page.Entries) > most {
						return fmt.Errorf("%d entries with limit %q", len(page.Entries), limit)
					}
				}
				return nil
			}},
		{"2.5",
			"Read page by page with any limit, a feed MUST show the same entries: none is left out between two pages.",
			sameWithAnyLimit},
		{"2.6", "`more` MUST be true where entries are left behind the page, and false where it reached the head.",
			func(ctx context.Context, p *probe) error {
				all, cursor, ended, err := p.beginning(ctx, 2)
				if err != nil {
					return err
				}
				page, err := p.fetch(ctx, p.with("limit", "1"))
				if err != nil {
					return err
				}
				if !*page.More {
					return fmt.Errorf("the first of %d entries says that nothing is left", len(all))
				}
				if !ended {
					return nil
				}
				page, err = p.fetch(ctx, p.with("after", cursor))
				if err == nil && len(page.Entries) == 0 && *page.More {
					err = fmt.Errorf("the head says that something is left")
				}
				return err
			}},
	}
}
