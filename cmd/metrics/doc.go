// Package metrics counts what rowfeed does, for Prometheus, in a registry of its own: the
// process's default one is left alone.
//
//	m := metrics.New(nil)
//	db, err := rowfeed.Open(ctx, pool, postgres.New(), &rowfeed.Config{Observer: m.Observer()})
//	...
//	m.Watch(ctx, db)
//	http.Handle("/metrics", m.Handler())
//
// What happens in this process comes through the Observer, as counters. What is in the
// database (what waits, how far consumers are behind, who has leases) is the same whoever asks:
// it is read now and then, never more often than Config.Every however many scrape, and never
// for longer than Config.Timeout.
//
// The number of series is bounded: labels are names of feeds, consumers and lease kinds, and
// beyond Config.MaxNames and Config.MaxShards the rest stands together as "others".
// docs/OBSERVABILITY.md has every metric and what to do about it.
package metrics
