// Package peers runs rowfeed next to others that tell of committed rows, on private servers that it
// starts with durable settings. It is a module of its own, since it needs those others, and all of it
// is tests:
//
//	cd cmd/bench/peers
//	go test -timeout 0 -run TestPeers                     everything, hours
//	go test -timeout 0 -run TestPeers/drain/postgres15/river
//	go test -timeout 0 -tune -run TestPeersTuning/drain   all configurations
//	go test -short                                        does it still work? No figures.
//
// Peers are watermill-sql, River, logical replication by pglogrepl, and a poller that trusts ids.
// The measures are drain, cost, latency-200, latency-1000, racing, first, idle, held and hang. Each
// peer's file has the configurations that were tried, chosen_test.go the best of them for each
// measure. FIGURES.md has the last figures.
package peers
