package rowfeed

import (
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/install"
)

// PrintFeed returns the script that AddFeed would run, without a connection to the database. The database must have
// rowfeed's tables. The spec gives the types of the columns that it names, such as "id:bigint".
//
// PrintFeed cannot check what only the table itself shows: its other indexes, cascades and partitions. So it does not
// refuse every table that AddFeed refuses. Feed.Verify of package admin finds most of that. With ModeOutbox, the
// script gives no positions to rows that already exist. Call AddFeed with the same spec for them, or BackFill of
// package admin.
func PrintFeed(d *dialect.Dialect, cfg *Config, spec FeedSpec) ([]dialect.Step, error) {
	names, err := cfg.names()
	if err != nil {
		return nil, err
	}
	return install.Print(d, names, spec)
}

// PrintMigrate returns the script that makes rowfeed's own tables in a database that has none of them, without a
// connection to it.
func PrintMigrate(d *dialect.Dialect, cfg *Config) ([]dialect.Step, error) {
	names, err := cfg.names()
	if err != nil {
		return nil, err
	}
	return install.PrintMigrate(d, names)
}

// PrintBump returns the script of Bump, or of AdoptDatabase if adopt is true, without a connection to the database.
// The feed's next publisher stores the identity of its database.
func PrintBump(d *dialect.Dialect, cfg *Config, feed string, adopt bool) ([]dialect.Step, error) {
	names, err := cfg.names()
	if err == nil {
		err = feedtype.ValidName(feed)
	}
	if err != nil {
		return nil, err
	}
	return install.PrintBump(d, names, feed, adopt), nil
}
