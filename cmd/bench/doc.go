// Package bench measures what rowfeed costs, on private servers that it starts with
// durable settings. It is a module of its own, and all of it is tests:
//
//	cd bench
//	go test -timeout 0                                    everything, more than an hour
//	go test -timeout 0 -run Publish/mariadb               one measure on one database
//	go test -timeout 0 -run TestPeers/drain               rowfeed next to others
//	go test -timeout 0 -run TestPeers/drain/postgres15/river
//	go test -timeout 0 -tune -run TestPeersTuning/drain   others in all their configurations
//	ROWFEED_TEST_ENGINES=mysql go test -timeout 0         on another database
//	go test -short                                        does it still work? No figures.
//
// The measures are Publish, Writers, Consume, Latency, Held, Size, Shards, Idle, Waiters, FanOut, Locks, Outbox, Profile and Peers;
// each prints Markdown. Peers are watermill-sql, River, logical replication by pglogrepl, and a poller that trusts ids:
// drain, cost, latency-200, latency-1000, racing, first, idle, held, hang. Each peer's file has the configurations that
// were tried, peers_chosen_test.go the best of them for each measure.
// What is compared runs in turns within one run, on the same server, and figures are
// medians over the repetitions (-reps): on a machine that does other work, only
// ratios mean anything. docs/PERFORMANCE.md holds the last figures.
package bench
