package rowfeed

import (
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/install"
)

// PrintFeed is the script that AddFeed would run, for a database that is not at
// hand and has rowfeed's tables: the types of the columns that the spec names come from it ("id:bigint"),
// and what only the table itself tells (its other indexes, cascades, partitions) is left out, so
// that nothing refuses a table that AddFeed would refuse; Feed.Verify finds most of that. With ModeOutbox
// the rows that are there already get their places from AddFeed with the same spec, or from
// Feed.BackFill.
func PrintFeed(d dialect.Dialect, cfg *Config, spec FeedSpec) ([]dialect.Step, error) {
	names, err := cfg.names()
	if err != nil {
		return nil, err
	}
	return install.Print(d, names, spec)
}

// PrintBump is the script of Bump, or of AdoptDatabase, for a database that is not at
// hand. The feed's next publisher writes down which database it is in.
func PrintBump(d dialect.Dialect, cfg *Config, feed string, adopt bool) ([]dialect.Step, error) {
	names, err := cfg.names()
	if err == nil {
		err = feedtype.ValidName(feed)
	}
	if err != nil {
		return nil, err
	}
	return install.PrintBump(d, names, feed, adopt), nil
}
