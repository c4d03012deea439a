package capture

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestRenamedSourceIsNamed (M72): the table, or a column of its key, is renamed. Every operation that needs it names
// it, and what to do. Renamed back, the feed resumes where it was.
func TestRenamedSourceIsNamed(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)")
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 0))
		for _, rename := range []struct{ there, back, gone string }{
			{"ALTER TABLE kv RENAME TO moved", "ALTER TABLE moved RENAME TO kv", "kv is gone"},
			{"ALTER TABLE kv RENAME COLUMN id TO number", "ALTER TABLE kv RENAME COLUMN number TO id",
				`kv has no key column "id" any more`},
		} {
			x.Exec("UPDATE kv SET v = v + 1 WHERE id = 1")
			x.Exec(rename.there)
			again := suite.OpenEnv(x.T, x.DB, nil) // a process that starts after the renaming
			fresh, err := again.RF.Feed(x.Ctx, "kv")
			if err != nil {
				x.Fatal(err)
			}
			for _, f := range []*rowfeed.Feed{f, fresh} {
				for operation, do := range map[string]func() error{
					"publish": func() error { _, err := f.Publish(x.Ctx); return err },
					"fetch":   func() error { _, err := f.Fetch(x.Ctx, rowfeed.Request{After: cursor}); return err },
					"consistent": func() error {
						_, err := f.Fetch(x.Ctx, rowfeed.Request{After: cursor, Consistent: true})
						return err
					},
					"info":      func() error { _, err := f.Info(x.Ctx); return err },
					"verify":    func() error { _, err := f.Admin().Verify(x.Ctx); return err },
					"check":     func() error { _, err := f.Admin().Check(x.Ctx); return err },
					"repair":    func() error { _, err := f.Admin().Repair(x.Ctx); return err },
					"upgrade":   func() error { _, err := f.Admin().Upgrade(x.Ctx); return err },
					"republish": func() error { _, err := f.Admin().RepublishWhere(x.Ctx, "", 10, nil); return err },
				} {
					var e *rowfeed.Error
					err := do()
					if !errors.As(err, &e) || e.Code != rowfeed.Refused || e.Object != `feed "kv"` || e.Err != nil ||
						!strings.Contains(e.Cause, rename.gone) || !strings.Contains(e.Next, "its name back") ||
						!strings.Contains(e.Next, "rowfeed feed drop kv") {
						x.Errorf("after %s, %s failed with %v", rename.there, operation, err)
					}
				}
			}
			x.Exec(rename.back)
			v := x.Scalar("SELECT v FROM kv")
			cursor = x.WantDrain(f, cursor, suite.KV(1, "a", int(v)))
		}
		x.WantSound(f)
	})
}
