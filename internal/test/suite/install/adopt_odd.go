package install

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// wantAddRefused adds a feed, and checks that it is refused with these texts.
func wantAddRefused(x *suite.Env, spec rowfeed.FeedSpec, texts ...string) {
	x.Helper()
	_, err := x.RF.AddFeed(x.Ctx, spec, nil)
	x.WantCode(err, rowfeed.Refused)
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			x.Errorf("the refusal does not say %q: %v", text, err)
		}
	}
	if strings.Contains(err.Error(), "Scan") {
		x.Errorf("the refusal has an error of the driver: %v", err)
	}
}

// TestAmbiguousSequenceIsNotAdopted (M28): two rows of the former table of sequences have the feed's name. It is not
// clear where positions ended, so the feed is refused by that name.
func TestAmbiguousSequenceIsNotAdopted(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Exec("CREATE TABLE many (name VARCHAR(100), value BIGINT)", "INSERT INTO many VALUES ('kv', 7), ('kv', 20)")
		spec := adopting
		spec.AdoptSequence = "many"
		wantAddRefused(x, spec, `2 rows have name "kv"`)
	})
}

// TestTooHighPositionIsNotAdopted (M28): a position or a former sequence that leaves too few higher positions is
// refused with the next step, because publishing would stop later.
func TestTooHighPositionIsNotAdopted(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.DB.Exec(x.T, "UPDATE sequences SET value = 9223372036854775806 WHERE name = 'kv'")
		wantAddRefused(x, adopting, "leaves too few positions", "set it to the highest feed_sync_id")
		x.DB.Exec(x.T, "UPDATE sequences SET value = 9 WHERE name = 'kv'")
		x.DB.Exec(x.T, "UPDATE kv SET feed_sync_id = 9223372036854775806 WHERE id = 1")
		wantAddRefused(x, adopting, "leaves too few higher ones", "set such positions to NULL")
	})
}

// TestOddValuesOfTeamAreNamed (M72): the former tables of sequences and cursors hold values that are none. The refusal
// names table, column and row, and the refusal of a hand-back has a next step of its own.
func TestOddValuesOfTeamAreNamed(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		createPositioned(x, "feed_sync_id BIGINT NULL")
		x.Exec("CREATE TABLE odd (name VARCHAR(100), value VARCHAR(100))")
		spec, cursors := adopting, adopting
		spec.AdoptSequence, cursors.AdoptCursors = "odd", "odd"
		for value, text := range map[string]string{"NULL": "is NULL", "'x'": `is "x"`, "'1.5'": `is "1.5"`} {
			x.DB.Exec(x.T, "DELETE FROM odd")
			x.DB.Exec(x.T, "INSERT INTO odd VALUES ('kv', "+value+")")
			wantAddRefused(x, spec, "odd", `column value of its row "kv" `+text)
			if value != "NULL" { // a consumer that has consumed nothing
				wantAddRefused(x, cursors, "odd", `column value of its row "kv" `+text)
			}
		}
		x.DB.Exec(x.T, "UPDATE odd SET name = NULL, value = '3'")
		wantAddRefused(x, cursors, "odd", `a row with value "3" has NULL as its name`)

		x.Publish(x.Add(adopting))
		x.DB.Exec(x.T, "DELETE FROM sequences")
		_, err := x.RF.HandBackFeed(x.Ctx, "kv")
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), "drop the feed without --hand-back") ||
			strings.Contains(err.Error(), "--adopt-sequence") {
			x.Errorf("the hand-back is refused with %v", err)
		}
	})
}
