package conformance

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
)

// TestSourceGone (M72): a table, or a column of its key, that is renamed under a feed is named
// by every operation that needs it, together with the way out; renamed back, the feed
// goes on where it stood.
func TestSourceGone(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 0)")
		cursor := x.wantDrain(f, "", kv(1, "a", 0))
		for _, rename := range []struct{ there, back, gone string }{
			{"ALTER TABLE kv RENAME TO moved", "ALTER TABLE moved RENAME TO kv", "kv is gone"},
			{"ALTER TABLE kv RENAME COLUMN id TO number", "ALTER TABLE kv RENAME COLUMN number TO id", `kv has no key column "id" any more`},
		} {
			x.exec("UPDATE kv SET v = v + 1 WHERE id = 1")
			x.exec(rename.there)
			again := openEnv(x.T, x.db, nil) // a process that starts now finds it so, too
			fresh, err := again.rf.Feed(x.ctx, "kv")
			if err != nil {
				x.Fatal(err)
			}
			for _, f := range []*rowfeed.Feed{f, fresh} {
				for operation, do := range map[string]func() error{
					"publish":    func() error { _, err := f.Publish(x.ctx); return err },
					"fetch":      func() error { _, err := f.Fetch(x.ctx, rowfeed.Request{After: cursor}); return err },
					"consistent": func() error { _, err := f.Fetch(x.ctx, rowfeed.Request{After: cursor, Consistent: true}); return err },
					"info":       func() error { _, err := f.Info(x.ctx); return err },
					"verify":     func() error { _, err := f.Admin().Verify(x.ctx); return err },
					"check":      func() error { _, err := f.Admin().Check(x.ctx); return err },
					"repair":     func() error { _, err := f.Admin().Repair(x.ctx); return err },
					"upgrade":    func() error { _, err := f.Admin().Upgrade(x.ctx); return err },
					"republish":  func() error { _, err := f.Admin().RepublishWhere(x.ctx, "", 10, nil); return err },
				} {
					var e *rowfeed.Error
					if err := do(); !errors.As(err, &e) || e.Code != rowfeed.Refused || e.Object != `feed "kv"` || e.Err != nil ||
						!strings.Contains(e.Cause, rename.gone) || !strings.Contains(e.Next, "its name back") || !strings.Contains(e.Next, "rowfeed feed drop kv") {
						x.Errorf("%s after %s: %v", operation, rename.there, err)
					}
				}
			}
			x.exec(rename.back)
			v := x.scalar("SELECT v FROM kv")
			cursor = x.wantDrain(f, cursor, kv(1, "a", int(v)))
		}
		x.wantSound(f)
	})
}
