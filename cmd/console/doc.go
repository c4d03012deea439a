// Package console serves rowfeed's web pages: feeds with their latest entries, consumers, leases, dead letters,
// blocking transactions and the audit log. Their forms run an operator's actions.
//
// The server renders every page. All pages can be read, and all actions be used, without JavaScript. With JavaScript,
// small modules refresh pages, draw plots and follow a feed through the public HTTP protocol. The
// Content-Security-Policy forbids to load anything from other servers.
//
// Package access decides what an identity sees and does. A feed, its consumers and its leases need the right to read or
// to administer it. Rows need the right to read. Dead letters and statements of other sessions contain values of rows
// and need the right to administer.
package console
