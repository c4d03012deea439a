package protocoltest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// feed is the feed that the checks read.
type feed struct {
	*client
	name string
	info struct {
		Generation int64   `json:"generation"`
		Head       string  `json:"head"`
		DataShards int     `json:"data_shards"`
		ShardIDs   []int64 `json:"shard_ids"`
	}
	scope url.Values // of all pages: of a feed with several shard ids, one shard is read

	maxEntries     int
	patience, hold time.Duration // see Options
}

func newFeed(ctx context.Context, c *client, o Options) (*feed, error) {
	f := &feed{client: c, name: o.Feed, maxEntries: cmp.Or(o.MaxEntries, defaultEntries),
		patience: cmp.Or(o.Patience, defaultPatience), hold: cmp.Or(o.Hold, defaultHold)}
	if f.name == "" {
		names, err := c.feedNames(ctx)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("the server lists no feed")
		}
		f.name = names[0]
	}
	if err := c.getJSON(ctx, "/_feeds/"+url.PathEscape(f.name), nil, &f.info); err != nil {
		return nil, err
	}
	if len(f.info.ShardIDs) > 1 {
		f.scope = url.Values{"shard": {fmt.Sprint(f.info.ShardIDs[0])}}
	}
	return f, nil
}

func (f *feed) fetchPath() string { return "/_feeds/fetch/" + url.PathEscape(f.name) }

// with returns the query of the feed's pages, with pairs of a parameter and its value added.
func (f *feed) with(pairs ...string) url.Values {
	query := url.Values{}
	for name, values := range f.scope {
		query[name] = slices.Clone(values)
	}
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return query
}

// entry is an entry of a page.
type entry struct {
	Position string          `json:"position"`
	Shard    *int64          `json:"shard"`
	Op       string          `json:"op"`
	Key      json.RawMessage `json:"key"`
	Row      json.RawMessage `json:"row"`
}

// page is a page, with its response.
type page struct {
	*response
	Feed    *string   `json:"feed"`
	Entries []entry   `json:"entries"`
	Cursor  *string   `json:"cursor"`
	More    *bool     `json:"more"`
	Base64  *[]string `json:"base64"`
}

// fetch reads a page, and fails if one of its members is missing.
func (f *feed) fetch(ctx context.Context, query url.Values, header ...string) (*page, error) {
	a, err := f.ask(ctx, http.MethodGet, f.fetchPath(), query, append([]string{"Accept", jsonType}, header...)...)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK || a.mediaType() != jsonType {
		return nil, fmt.Errorf("?%s: status %d, Content-Type %q: %.200s",
			query.Encode(), a.status, a.header.Get("Content-Type"), a.body)
	}
	page := &page{response: a}
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

// above compares two numbers, or two ULIDs.
func above(a, b string) bool { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0 }

// readTo reads the feed from the beginning, in pages of limit entries, to the position upto. If upto is empty, it reads
// as much as Options allow. ended reports whether it has reached the head.
func (f *feed) readTo(
	ctx context.Context, query url.Values, limit int, upto string,
) (all []entry, cursor string, ended bool, err error) {
	query = f.copyOf(query)
	query.Set("limit", strconv.Itoa(limit))
	for {
		page, err := f.fetch(ctx, query)
		if err != nil {
			return nil, "", false, err
		}
		for _, e := range page.Entries {
			if upto != "" && above(e.Position, upto) {
				return all, cursor, false, nil
			}
			if len(all) > 0 && !above(e.Position, all[len(all)-1].Position) {
				return nil, "", false, fmt.Errorf("position %s follows %s (after=%s)",
					e.Position, all[len(all)-1].Position, query.Get("after"))
			}
			all = append(all, e)
		}
		if cursor = *page.Cursor; !*page.More {
			return all, cursor, true, nil
		}
		if upto == "" && len(all) >= f.maxEntries {
			return all, cursor, false, nil
		}
		if cursor == query.Get("after") && len(page.Entries) == 0 {
			return nil, "", false, fmt.Errorf("the cursor %q leads to itself, with more true", cursor)
		}
		query.Set("after", cursor)
	}
}

func (f *feed) copyOf(query url.Values) url.Values {
	copied := f.with()
	for name, values := range query {
		copied[name] = slices.Clone(values)
	}
	return copied
}

// beginning reads the first entries of the feed. The check is untried if the feed has fewer than least.
func (f *feed) beginning(ctx context.Context, least int) (all []entry, cursor string, ended bool, err error) {
	all, cursor, ended, err = f.readTo(ctx, nil, 500, "")
	if err == nil && len(all) < least {
		err = untried(fmt.Sprintf("the feed has fewer than %d entries", least))
	}
	return all, cursor, ended, err
}

// same compares three readings of the feed up to the same position. What before and after both have, between must
// have. What neither has, between must not have.
func same(before, between, after []entry) error {
	at := func(all []entry) map[string]bool {
		found := map[string]bool{}
		for _, e := range all {
			found[e.Position] = true
		}
		return found
	}
	earlier, middle, later := at(before), at(between), at(after)
	if len(middle) != len(between) {
		return fmt.Errorf("an entry came twice")
	}
	for position := range earlier {
		if later[position] && !middle[position] {
			return fmt.Errorf("the entry at position %s is missing", position)
		}
	}
	for position := range middle {
		if !earlier[position] && !later[position] {
			return fmt.Errorf("the entry at position %s is in no other reading", position)
		}
	}
	return nil
}

// compared calls read between two readings of the beginning, and compares the three.
func (f *feed) compared(ctx context.Context, read func(upto string) ([]entry, error)) error {
	before, _, _, err := f.beginning(ctx, 1)
	if err != nil {
		return err
	}
	upto := before[len(before)-1].Position
	between, err := read(upto)
	if err != nil {
		return err
	}
	after, _, _, err := f.readTo(ctx, nil, 500, upto)
	if err != nil {
		return err
	}
	return same(before, between, after)
}
