// Package publish gives positions to changes, and records changes for writers. It decides in which order keys get their
// positions, in which transaction, which publisher works when there are several, how often it polls, and when deletes
// are forgotten. It uses gap, history, watch, lease, catalog and the packages below them, and never read. What differs
// between the kinds of positions is a Positioner, which package rowfeed chooses. Begin with Publisher in publisher.go
// and Sequence.Pass in sequence.go. A publisher without the lease publishes for one that has stalled: standin.go. The
// pass queries the row of each change: if the row is gone, it stores a deleted position (a tombstone), which
// tombstones.go forgets later. DESIGN.md argues the order of the publishing transaction.
package publish
