// Package bench is `rowfeed bench`: it measures what rowfeed does on a user's database.
//
// A run makes tables of its own, under a prefix that nothing else in the database has. At the end it removes
// them, also after an error. It does not touch the user's feeds, consumers and tables, and a `rowfeed serve` of
// the user does not see the run's feeds.
//
// Begin with Run in bench.go. Each measure has a file: writers.go, drain.go, pages.go, consume.go, latency.go and
// idle.go. workspace.go has what they share. tables.go, marker.go and remove.go make and remove the tables, and
// clean.go removes those of runs that were killed.
package bench
