package feedhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/rowfeed/rowfeed/feedtype"
)

// feedsEndpoint answers with the list of feeds, and with the description of one feed.
type feedsEndpoint struct {
	sources *sources
	out     *responder
	tags    *columnTags
}

func (e feedsEndpoint) list(w http.ResponseWriter, r *http.Request, c call) error {
	names, err := e.sources.catalog.Names(r.Context())
	if err != nil {
		return err
	}
	body := []byte(`{"feeds":[`)
	first := true
	for _, name := range names {
		data, err := e.describe(r.Context(), name)
		if err != nil {
			return err
		}
		if data == nil {
			continue
		}
		if !first {
			body = append(body, ',')
		}
		body, first = append(body, data...), false
	}
	e.out.writeSmall(w, r, c.format, append(body, "]}\n"...))
	return nil
}

// describe returns a feed's element of the list: its Info, or its name and a problem. A problem is for a feed that is
// broken (its table may be gone), or that the client may not see (its view may name a column that is gone). The element
// is nil if the feed was dropped meanwhile.
func (e feedsEndpoint) describe(ctx context.Context, name string) ([]byte, error) {
	source, err := e.sources.catalog.Source(ctx, name)
	var info *feedtype.Info
	if err == nil {
		info, err = source.Info(ctx)
	}
	switch {
	case err == nil:
		return marshal(info)
	case errors.Is(err, feedtype.UnknownFeed):
		return nil, nil
	case errors.Is(err, feedtype.Refused) || errors.Is(err, feedtype.Failed) || errors.Is(err, feedtype.Forbidden):
		if Withheld(err) {
			e.out.log.ErrorContext(ctx, "a feed is listed without its description, which cannot be read",
				"feed", name, "error", err)
		}
		return marshal(struct {
			Name    string  `json:"name"`
			Problem Problem `json:"problem"`
		}{name, ProblemOf(err, name)})
	}
	return nil, err
}

func (e feedsEndpoint) info(w http.ResponseWriter, r *http.Request, c call) error {
	source, err := e.sources.catalog.Source(r.Context(), c.feed)
	if err != nil {
		return err
	}
	info, err := source.Info(r.Context())
	if err != nil {
		return err
	}
	body, err := marshal(info)
	if err != nil {
		return err
	}
	w.Header().Set(columnsHeader, e.tags.of(c.feed, info.Columns))
	e.out.writeSmall(w, r, c.format, append(body, '\n'))
	return nil
}
