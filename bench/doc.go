// Package bench measures what rowfeed costs, on private servers that it starts with
// durable settings. It is a module of its own, and all of it is tests:
//
//	cd bench
//	go test -timeout 0                                    everything, about 20 minutes
//	go test -timeout 0 -run Publish/mariadb               one measure on one database
//	ROWFEED_TEST_ENGINES=mysql go test -timeout 0         on another database
//	go test -short                                        does it still work? No figures.
//
// The measures are Publish, Writers, Consume, Latency, Held, Size, Shards, Idle, Waiters, Locks, Outbox and Profile;
// each prints Markdown.
// What is compared runs in turns within one run, on the same server, and figures are
// medians over the repetitions (-reps): on a machine that does other work, only
// ratios mean anything. docs/PERFORMANCE.md holds the last figures.
package bench
