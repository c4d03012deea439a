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

// Over is a Catalog of what whoever asks may read of another one: see [From]. Feeds that
// they may not read are not listed; one that is asked for is answered with the code
// [rowfeed.Forbidden], be it there or not.
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

// source is a feed as somebody sees it, for as long as they may.
type source struct {
	feed rowfeed.Source
	name string
	who  Identity
}

// Fetch asks again whether the token still holds, and ends with it: who follows a stream
// asks for page after page, and waits for each.
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
		page, err = s.seen(ctx, req)
	}
	if ended := s.who.ended(ctx); ended != nil {
		return rowfeed.Page{}, ended
	}
	return page, err
}

// skipping bounds how long pages are read of which nothing is seen: what is answered then is empty,
// and has more. Who asks for that again is counted again, and has a cursor that has moved.
const skipping = time.Second

// seen is the first page of which something is seen. Each view's is made for it alone.
func (s source) seen(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	begun := time.Now()
	for wait := req.Wait; ; {
		page, err := s.feed.Fetch(ctx, req)
		if err != nil {
			return rowfeed.Page{}, err
		}
		shown, err := s.who.View.Page(s.name, page)
		if err != nil {
			return rowfeed.Page{}, s.unseen()
		}
		if req.Consistent { // which bounds the publishing by the wait, and does not wait
			req.Consistent, wait = false, 0
		}
		left := wait - time.Since(begun)
		switch {
		case len(shown.Entries) > 0 || page.Cursor == req.After:
			return shown, nil
		case page.More && time.Since(begun) > skipping, !page.More && left <= 0:
			return shown, nil
		}
		// Whoever waits is not woken by what he does not see.
		req.After, req.Wait = page.Cursor, max(left, 0)
	}
}

// Info is the feed's description as it is seen.
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
		return nil, s.unseen()
	}
	return info, nil
}

// unseen is the answer where the view cannot be taken: its columns are not the feed's any
// more. Which they were is not for its holder to know.
func (s source) unseen() error {
	return &rowfeed.Error{Code: rowfeed.Forbidden, Object: fmt.Sprintf("feed %q", s.name),
		Cause: "the view of the token " + s.who.Name + " does not fit the feed any more: its columns have changed",
		Next:  "ask for another token; `rowfeed token list` shows the view"}
}

// shardSource is a source that tells how far shards are.
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
