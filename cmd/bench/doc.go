// Package bench measures what rowfeed costs next to a prototype, by capture, by size and so on, on private
// servers that it starts with durable settings. All of it is tests, which run only with -figures:
//
//	cd cmd/bench
//	go test -figures -timeout 0                                  everything, more than an hour
//	go test -figures -timeout 0 -run Publish/mariadb             one measure on one database
//	ROWFEED_TEST_ENGINES=mysql go test -figures -timeout 0       on another database
//	go test -figures -short                                      does it still work? No figures.
//
// Publishing, pages, consuming, latency and idle statements by themselves are measured by `rowfeed bench`, and compared
// between two commits by scripts/bench.sh. The folder peers has rowfeed next to others.
// Each measure prints Markdown. What is compared runs in turns within one run, on the same server, and figures are
// medians over the repetitions (-reps): on a machine that does other work, only ratios mean anything.
// FIGURES.md has the last figures, and what was tried and left out.
package bench
