// Package admin has what operators do, which applications get from rowfeed.DB.Admin: tokens, and the audit log. It
// decides what a token permits and when it ends, and what is written down of an act. It uses the packages below
// rowfeed. Begin with admin.go.
package admin
