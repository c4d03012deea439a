// Package admin has what operators do, which applications get from rowfeed.DB.Admin: consumers, dead letters, leases,
// tokens and the audit log. It decides how a cursor may be moved by hand, what a token permits and when it ends, and
// what is written down of an act. It uses the packages below rowfeed; of a feed it needs what Feed says. Begin with
// admin.go.
package admin
