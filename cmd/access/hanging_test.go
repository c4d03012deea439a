package access

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestQueriesForTokensTimeOut: if the database hangs, authentication fails after a limited time, at the first query and
// at later ones. It lets no client in.
func TestQueriesForTokensTimeOut(t *testing.T) {
	var hangs atomic.Bool
	endless := errors.New("the question has no end")
	pool := testdb.SQLite.New(t).OpenTapped(t,
		testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if !hangs.Load() || !strings.Contains(ev.SQL, "rowfeed_tokens") {
				return nil
			}
			if end, ok := ctx.Deadline(); !ok || time.Until(end) > askingTimeout {
				return endless
			}
			return context.DeadlineExceeded // as after the timeout
		}})
	db, err := rowfeed.Open(t.Context(), pool, sqlite.New(), nil)
	if err == nil {
		_, err = db.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := db.Admin().AddToken(t.Context(),
		admin.TokenSpec{Name: "shop", Grants: []Grant{{Right: Read, Feed: EveryFeed}}})
	if err != nil {
		t.Fatal(err)
	}
	tokens := NewTokens(db)
	tokens.Trust = time.Nanosecond
	ask := func(when string) {
		t.Helper()
		hangs.Store(true)
		defer hangs.Store(false)
		who, err := tokens.Of(t.Context(), text)
		if err == nil || errors.Is(err, endless) || errors.Is(err, rowfeed.Unauthorized) ||
			feedhttp.ProblemOf(err, "").Status != 503 || who.Name != "" {
			t.Errorf("%s: %+v %v", when, who, err)
		}
	}
	ask("at first")
	if who, err := tokens.Of(t.Context(), text); err != nil || who.Name != "shop" {
		t.Fatal(who, err)
	}
	ask("later")
	if who, err := tokens.Of(t.Context(), text); err != nil || who.Name != "shop" {
		t.Errorf("the database is back: %+v %v", who, err)
	}
}
