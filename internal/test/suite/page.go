package suite

import (
	"errors"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Show formats a page: a line "3 upsert {...}" for each entry, then "> " and the cursor, and "+" if there is more.
func Show(page rowfeed.Page) string {
	var lines []string
	for _, e := range page.Entries {
		lines = append(lines, e.Position+" "+Line(e))
	}
	end := string(Place(page.Cursor))
	if page.More {
		end += "+"
	}
	return strings.Join(append(lines, "> "+end), "\n")
}

// WantPage asserts a page, given as Show formats it.
func (x *Env) WantPage(f rowfeed.Source, after rowfeed.Cursor, limit int, want ...string) rowfeed.Cursor {
	x.Helper()
	page := x.Fetch(f, after, limit)
	if got := Show(page); got != strings.Join(want, "\n") {
		x.Fatalf("the page after %q (limit %d) is\n%s\nwant\n%s", after, limit, got, strings.Join(want, "\n"))
	}
	return page.Cursor
}

// WantRefused asserts that a cursor is refused with a code and a next step.
func (x *Env) WantRefused(f rowfeed.Source, after rowfeed.Cursor, code rowfeed.Code) {
	x.Helper()
	_, err := f.Fetch(x.Ctx, rowfeed.Request{After: after})
	var e *rowfeed.Error
	if !errors.As(err, &e) || e.Code != code || e.Next == "" {
		x.Errorf("after %q: error %v, want code %s and a next step", after, err, code)
	}
	if code == rowfeed.InvalidRequest && e != nil && e.Param != "after" {
		x.Errorf("after %q: the parameter named is %q", after, e.Param)
	}
}

// Found waits until the feed's pool reaches a restarted server.
func (x *Env) Found(f *rowfeed.Feed) {
	x.Helper()
	x.Eventually("the pool reaches the server again", func() bool {
		_, err := f.Fetch(x.Ctx, rowfeed.Request{After: rowfeed.Now})
		return !IsCode(err, rowfeed.Unavailable)
	})
}

// Place returns a cursor without the head that was read and its term, which is a random number.
func Place(c rowfeed.Cursor) rowfeed.Cursor {
	if state, err := c.State(); err == nil && state.Term != 0 {
		state.Head, state.Term, state.Part = feedtype.Position{}, 0, feedtype.CursorPart{}
		return state.Cursor()
	}
	return c
}
