package feedhttp

import (
	"context"
	"net/http"

	"github.com/rowfeed/rowfeed/feedtype"
)

// shardsEndpoint answers with the watermarks of the shards of a ULID feed.
type shardsEndpoint struct {
	sources *sources
	out     *responder
}

func (e shardsEndpoint) answer(w http.ResponseWriter, r *http.Request, c call) error {
	wait, err := parseWait(c.values)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(r.Context(), wait+e.sources.timeout)
	defer cancel()
	r = r.WithContext(bounded)
	source, err := e.sources.catalog.Source(r.Context(), c.feed)
	if err != nil {
		return err
	}
	shards, can := source.(feedtype.ShardSource)
	if !can {
		return &feedtype.Error{Code: feedtype.Refused, Object: feedObject(c.feed),
			Cause: "its source cannot list the shards with new entries", Next: "fetch each shard instead"}
	}
	if wait > 0 {
		leave, err := e.sources.wait(r.Context())
		if err != nil {
			return err
		}
		defer leave()
	}
	waiting, end := context.WithCancel(r.Context())
	defer end()
	defer context.AfterFunc(e.sources.closing, end)()
	now, err := shards.Standings(waiting, c.values.Get("since"), wait)
	if err != nil && e.sources.closing.Err() != nil && r.Context().Err() == nil { // the server is shutting down
		now, err = shards.Standings(r.Context(), "", 0)
	}
	if err != nil {
		return err
	}
	body, err := marshal(now)
	if err != nil {
		return err
	}
	e.out.writeSmall(w, r, c.format, append(body, '\n'))
	return nil
}
