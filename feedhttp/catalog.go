package feedhttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Catalog is the set of feeds that a Handler serves.
type Catalog interface {
	// Names returns the names of the feeds, in the order in which they are shown.
	Names(ctx context.Context) ([]string, error)
	// Source returns the feed of that name, or an error with the code [rowfeed.UnknownFeed].
	Source(ctx context.Context, name string) (feedtype.Source, error)
}

// Of returns a Catalog of all feeds of a DB.
func Of(db *rowfeed.DB) Catalog { return dbCatalog{db} }

type dbCatalog struct{ db *rowfeed.DB }

func (c dbCatalog) Names(ctx context.Context) ([]string, error) {
	feeds, err := c.db.Feeds(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(feeds))
	for i, f := range feeds {
		names[i] = f.Name()
	}
	return names, nil
}

func (c dbCatalog) Source(ctx context.Context, name string) (feedtype.Source, error) {
	f, err := c.db.Feed(ctx, name)
	if errors.Is(err, feedtype.InvalidRequest) {
		// In a path, an invalid name is the name of a feed that does not exist.
		return nil, &feedtype.Error{Code: feedtype.UnknownFeed, Object: feedObject(name),
			Cause: "there is no such feed",
			Next:  "GET /_feeds lists the feeds"}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// sources reads the feeds of a catalog, within the limits of the server.
type sources struct {
	catalog Catalog
	timeout time.Duration                                       // Config.PageTimeout
	wait    func(ctx context.Context) (leave func(), err error) // Config.Wait
	closing context.Context                                     // ends when Handler.Close is called
	memory  *memory
	client  func(ctx context.Context) string // Config.Client
}

// share returns the memory for the pages of a request, which are encoded with the coding. Call Leave afterwards.
func (s *sources) share(r *http.Request, feed string, req feedtype.Request, by *coding) *share {
	return s.memory.newShare(feed, s.client(r.Context()), req.Limit, by.memory())
}

// page fetches a page within the memory of its share. fetch is called again if the page needs more memory. It then has
// to begin at the same cursor, so the cursor that "now" or a time means is fetched before the request waits.
func (s *share) page(ctx context.Context, req feedtype.Request,
	fetch func(feedtype.Request) (feedtype.Page, error),
) (feedtype.Page, error) {
	req.Room = s
	_, isTime, _ := req.After.Time()
	wait := req.Wait
	begins := wait > 0 && !req.Consistent && (req.After == feedtype.Now || isTime)
	if begins {
		req.Wait = 0
	}
	for {
		page, err := fetch(req)
		if err == nil && begins && len(page.Entries) == 0 {
			begins, req.After, req.Wait = false, page.Cursor, wait
			continue
		}
		if err != nil || s.settle(page) {
			return page, err
		}
		req.Wait, req.Consistent = 0, false
		if _, err := s.Enter(ctx); err != nil {
			return feedtype.Page{}, err
		}
	}
}

// fetch fetches a page. If the request waits for an entry, the wait ends when Close is called.
func (s *sources) fetch(r *http.Request, source feedtype.Source, req feedtype.Request, share *share) (
	feedtype.Page, error,
) {
	return share.page(r.Context(), req, func(req feedtype.Request) (feedtype.Page, error) {
		return s.fetchOnce(r, source, req)
	})
}

func (s *sources) fetchOnce(r *http.Request, source feedtype.Source, req feedtype.Request) (feedtype.Page, error) {
	if req.Wait > 0 {
		leave, err := s.wait(r.Context())
		if err != nil {
			return feedtype.Page{}, err
		}
		defer leave()
	}
	if req.Wait == 0 || req.Consistent {
		return source.Fetch(r.Context(), req)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	page, err := source.Fetch(ctx, req)
	if err != nil && s.closing.Err() != nil && r.Context().Err() == nil {
		req.Wait = 1 // 1 ns: waiting requests then share one read of the current page
		return source.Fetch(r.Context(), req)
	}
	return page, err
}
