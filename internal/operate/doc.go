// Package operate does for operators what package admin declares: it tells what is wrong with a feed (Checker.Check),
// what state it is in (Inspector.Status), and how far its consumers are behind (Inspector.Lag). It repairs what Check
// finds (Checker.Repair), and ends a session that holds a shard (Inspector.Unblock).
//
// The package decides which rules a key must meet. What differs between sequences, ULIDs and outboxes is a kind
// (sequence.go). It uses packages admin and install, and the packages below them. Begin with check.go and status.go.
package operate
