package ulid

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// stream reads Server-Sent Events.
type stream struct {
	*suite.Env
	lines *bufio.Scanner
}

// streamed opens a stream after the event with the id last, if there is one.
func streamed(x *suite.Env, url, last string) *stream {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.Ctx, suite.Patience())
	x.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		x.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		x.Fatalf("%s: %s", url, resp.Status)
	}
	return &stream{x, bufio.NewScanner(resp.Body)}
}

// wantNext reads events up to the next entry, which must be of the row. It returns the event's id.
func (s *stream) wantNext(row int) (id string) {
	s.Helper()
	for s.lines.Scan() {
		if text, ok := strings.CutPrefix(s.lines.Text(), "id: "); ok {
			id = text
		}
		text, ok := strings.CutPrefix(s.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Position string
			Key      struct{ ID int }
		}
		err := json.Unmarshal([]byte(text), &e)
		if err != nil || e.Key.ID != row || !strings.HasPrefix(id, e.Position) {
			s.Fatalf("the stream has %s with id %q, want row %d (%v)", text, id, row, err)
		}
		return id
	}
	s.Fatalf("the stream ended before row %d: %v", row, s.lines.Err())
	return ""
}

// TestStreamShowsItsShardOnly (M69): a stream of one shard shows its entries and those that are committed later,
// without a publisher, and none of other shards. A stream continues after the id of an event. A feed with several
// shards has no stream without a shard.
func TestStreamShowsItsShardOnly(t *testing.T) {
	eachMode(t, func(x *suite.Events) {
		mode := x.Feed.Mode()
		write := func(shard, id int) {
			if mode == rowfeed.ModeBlocking {
				x.Write(shard, id, id)
			} else {
				x.Appended(id, shard, time.Time{})
			}
		}
		write(-5, 1)
		write(77, 2)
		url := x.Served(x.RF).URL + "/_feeds/stream/events"
		x.WantProblem(url, http.StatusBadRequest, rowfeed.InvalidRequest, "", "name one shard")
		first, empty := streamed(x.Env, url+"?shard=-5", ""), streamed(x.Env, url+"?shard=3", "")
		id := first.wantNext(1)
		write(77, 3)
		write(-5, 4)
		write(3, 5)
		second := first.wantNext(4)
		empty.wantNext(5)
		again := streamed(x.Env, url+"?shard=-5", id)
		at := streamed(x.Env, url+"?shard=-5&after="+second, "")
		again.wantNext(4)
		write(-5, 6)
		for _, s := range []*stream{first, again, at} {
			s.wantNext(6)
		}
	})
}
