package shard

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestLowestCursorBringsDeletes (M18): a reader has read a key and not yet its delete when the feed is resharded.
// The lowest cursor of all parts is of a reader that began after the delete, and hides it. In the form that the
// refusal names, it brings the delete to all readers.
func TestLowestCursorBringsDeletes(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(60)
		x.Publish(f)
		first := func(i, limit int) rowfeed.Page {
			page, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.Part(i, 2), Limit: limit})
			if err != nil {
				x.Fatal(err)
			}
			return page
		}
		read := first(1, 10)
		id, _ := read.Entries[0].Key.Get("id")
		x.Exec(fmt.Sprintf("DELETE FROM kv WHERE id = %d", id))
		x.Publish(f)
		lowest := first(0, 1)
		x.Reshard(f, 512)
		_, err := f.Fetch(x.Ctx, rowfeed.Request{After: lowest.Cursor, Shards: rowfeed.Part(0, 2)})
		var refused *rowfeed.Error
		if !errors.As(err, &refused) || refused.Code != rowfeed.OtherPart {
			x.Fatal(err)
		}
		named := regexp.MustCompile(`of this cursor that is "([^"]+)"`).FindStringSubmatch(refused.Next)
		if named == nil {
			x.Fatalf("the refusal names no cursor: %v", err)
		}
		deleted := 0
		for i := range 2 {
			entries, _ := x.Part(f, rowfeed.Part(i, 2), rowfeed.Cursor(named[1]), 100)
			for _, e := range entries {
				if key, _ := e.Key.Get("id"); key == id && e.Op == rowfeed.Delete {
					deleted++
				}
			}
		}
		if deleted != 1 {
			x.Errorf("the delete of %d came %d times", id, deleted)
		}
	})
}
