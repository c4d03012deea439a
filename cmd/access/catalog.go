package access

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Over returns a Catalog of what the client may read of another Catalog: see [From]. It does not list feeds that the
// client may not read. A request for such a feed gets the code [rowfeed.Forbidden], whether the feed exists or not.
func Over(feeds feedhttp.Catalog) feedhttp.Catalog { return catalog{feeds} }

type catalog struct{ feeds feedhttp.Catalog }

func (c catalog) Names(ctx context.Context) ([]string, error) {
	names, err := c.feeds.Names(ctx)
	if err != nil {
		return nil, err
	}
	who := From(ctx)
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !who.May(Read, name) }), nil
}

func (c catalog) Source(ctx context.Context, name string) (rowfeed.Source, error) {
	who := From(ctx)
	if !who.May(Read, name) {
		return nil, forbidden(who, Read, fmt.Sprintf("feed %q", name))
	}
	feed, err := c.feeds.Source(ctx, name)
	if err != nil {
		return nil, err
	}
	if shards, ok := feed.(feedtype.ShardSource); ok {
		return shardSource{source{feed, name, who}, shards}, nil
	}
	return source{feed, name, who}, nil
}

// source is a feed as a client sees it, while its token is valid.
type source struct {
	feed rowfeed.Source
	name string
	who  Identity
}

// Fetch checks that the token is valid, and ends when it is not: a stream fetches page after page, and waits for
// each.
func (s source) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	if req.Consistent && !s.who.May(Publish, s.name) {
		return rowfeed.Page{}, forbidden(s.who, Publish, fmt.Sprintf("feed %q: consistent", s.name))
	}
	ctx, leave, err := s.who.holding(ctx)
	if err != nil {
		return rowfeed.Page{}, err
	}
	defer leave()
	var page rowfeed.Page
	if s.who.View.IsZero() {
		page, err = s.feed.Fetch(ctx, req)
	} else {
		page, err = s.visiblePage(ctx, req)
	}
	if ended := s.who.ended(ctx); ended != nil {
		return rowfeed.Page{}, ended
	}
	return page, err
}

// skipping is the maximum time of reading pages that the view hides completely. After it the answer is an empty page
// with More true. The client's next request then counts again, and has a later cursor.
const skipping = time.Second

// visiblePage returns the first page of which the view shows something. Pages of different views are made separately.
func (s source) visiblePage(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	begun := time.Now()
	for wait := req.Wait; ; {
		page, err := s.feed.Fetch(ctx, req)
		if err != nil {
			return rowfeed.Page{}, err
		}
		shown, err := s.who.View.Page(s.name, page)
		if err != nil {
			return rowfeed.Page{}, s.viewError()
		}
		if req.Consistent { // with Consistent, Wait limits the publishing, and the page does not wait
			req.Consistent, wait = false, 0
		}
		left := wait - time.Since(begun)
		switch {
		case len(shown.Entries) > 0 || page.Cursor == req.After:
			return shown, nil
		case page.More && time.Since(begun) > skipping, !page.More && left <= 0:
			return shown, nil
		}
		// An entry that the view hides does not end the wait.
		req.After, req.Wait = page.Cursor, max(left, 0)
	}
}

// Info returns the feed's description as the view shows it.
func (s source) Info(ctx context.Context) (*rowfeed.Info, error) {
	ctx, leave, err := s.who.holding(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	info, err := s.feed.Info(ctx)
	if err != nil || s.who.View.IsZero() {
		return info, err
	}
	if info, err = s.who.View.Info(info); err != nil {
		return nil, s.viewError()
	}
	return info, nil
}

// viewError returns the error for a view that does not fit the feed, because its columns have changed. It does not name
// the columns, which the client may not know.
func (s source) viewError() error {
	return &rowfeed.Error{Code: rowfeed.Forbidden, Object: fmt.Sprintf("feed %q", s.name),
		Cause: "the view of the token " + s.who.Name + " no longer fits the feed: its columns have changed",
		Next:  "ask for another token; `rowfeed token list` shows the view"}
}

// shardSource is a source that reports the watermarks of shards.
type shardSource struct {
	source
	shards feedtype.ShardSource
}

func (s shardSource) Standings(ctx context.Context, since string, wait time.Duration) (*feedtype.Standings, error) {
	ctx, leave, err := s.who.holding(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	now, err := s.shards.Standings(ctx, since, wait)
	if ended := s.who.ended(ctx); ended != nil {
		return nil, ended
	}
	return now, err
}
