// Package inspect finds out, for operators, what is wrong with a feed and how it stands: package admin has the types of its
// answers. It decides which rules a key must meet and what repairs it, what waits and who is in the way, how far consumers
// are behind, and whose session may be ended. It uses admin, install and what is below them. Begin with Checker.Check in
// check.go and Inspector.Status in status.go.
package inspect
