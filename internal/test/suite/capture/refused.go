package capture

import (
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestTablesOfTheUserAreKept (H22): tables of the user that have the names of rowfeed's tables are neither used nor
// dropped.
func TestTablesOfTheUserAreKept(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, &rowfeed.Config{Prefix: rowfeed.NoPrefix})
		x.Exec("CREATE TABLE feeds (mine INT)")
		if _, err := x.RF.Migrate(x.Ctx); err == nil {
			t.Error("migrate uses the user's table")
		}
		x.Scalar("SELECT count(mine) FROM feeds")
		x.Exec("DROP TABLE feeds")
		x.Migrate()
		x.Exec("CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY)", "CREATE TABLE changes_orders (mine INT)")
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "orders", Table: "orders"}, nil)
		x.WantCode(err, rowfeed.Conflict)
		if err := x.RF.DropFeed(x.Ctx, "orders"); err != nil && !suite.IsCode(err, rowfeed.UnknownFeed) {
			t.Error(err)
		}
		x.Scalar("SELECT count(mine) FROM changes_orders")
	})
}

// TestHalfDroppedFeedIsNoFeed: a feed whose drop was broken off is not listed, and cannot be added before it is
// dropped.
func TestHalfDroppedFeedIsNoFeed(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.AddKV()
		x.Exec("UPDATE rowfeed_feeds SET state = 'dropping'") // as a killed drop leaves it if DDL commits
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
		x.WantCode(err, rowfeed.Conflict)
		if feeds, err := x.RF.Feeds(x.Ctx); err != nil || len(feeds) != 0 {
			x.Errorf("the feeds are %v, %v", feeds, err)
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
	})
}

// TestOwnTablesAreRefused: a feed of one of rowfeed's own tables is refused, since it would publish itself for ever.
func TestOwnTablesAreRefused(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		for _, table := range []string{
			"rowfeed_sequences", "rowfeed_feeds", "rowfeed_changes_kv", "rowfeed_positions_kv",
		} {
			_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "own", Table: table}, nil)
			x.WantCode(err, rowfeed.Refused)
		}
	})
}

// TestKeyOfCompositeTypeIsRefused: a key of a composite type is refused, since a value with a NULL in it is neither
// NULL nor NOT NULL.
func TestKeyOfCompositeTypeIsRefused(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // other databases have no such types
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Statements("capture.table_with_composite_type")...)
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "c", Table: "c"}, nil)
		x.WantCode(err, rowfeed.Refused)
	})
}
