package feedhttp

import (
	"context"
	"net/http"
)

// fetchEndpoint answers with pages of a feed.
type fetchEndpoint struct {
	sources   *sources
	out       *responder
	tags      *columnTags
	noPublish bool
}

func (e fetchEndpoint) answer(w http.ResponseWriter, r *http.Request, c call) error {
	req, err := parseRequest(c.values)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(r.Context(), req.Wait+e.sources.timeout)
	defer cancel()
	r = r.WithContext(bounded)
	source, err := e.sources.catalog.Source(r.Context(), c.feed)
	if err != nil {
		return err
	}
	if req.Consistent && e.noPublish {
		return badParameter("consistent", "send the request to a server that publishes, or without consistent",
			"this server does not publish, so it cannot publish all changes first")
	}
	by := e.out.coding(r)
	share := e.sources.share(r, c.feed, req, by)
	defer share.Leave()
	page, err := e.sources.fetch(r, source, req, share)
	if err != nil {
		return err
	}
	e.tags.pageHeader(w, c.feed, page)
	parts := page.AppendLinesPart
	switch c.format {
	case jsonMediaType:
		parts = objectParts(page, c.feed)
	case eventsMediaType:
		eventsHeader(w, page)
		parts = eventParts(page, c.feed, func(i int) string { return page.Entries[i].ID(c.feed) })
	}
	e.out.writePage(w, r, answerForm{c.format, c.format + " of " + c.feed, parts}, page, by)
	return nil
}
