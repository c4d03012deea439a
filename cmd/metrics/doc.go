// Package metrics provides Prometheus metrics of rowfeed. They are in a registry of their own, not in the default
// registry of the process.
//
//	m := metrics.New(nil)
//	db, err := rowfeed.Open(ctx, pool, postgres.New(), &rowfeed.Config{Observer: m.Observer()})
//	...
//	m.Watch(ctx, db)
//	http.Handle("/metrics", m.Handler())
//
// The Observer counts the events of this process. The state of the database (pending changes, lag of consumers,
// holders of leases) is the same for every process. It is read at most once per Config.Every, whatever the number of
// scrapes, and for at most Config.Timeout.
//
// The number of series is limited. Labels are names of feeds, consumers and kinds of leases. Names beyond
// Config.MaxNames and shards beyond Config.MaxShards share the label "others". The help text of each metric says what
// it is, docs/OPERATIONS.md what to do about it.
package metrics
