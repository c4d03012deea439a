// Package console is rowfeed's web pages: the feeds and the entries of each as they come,
// consumers, leases, dead letters, who blocks what, and what an operator does about them.
//
// Every page is made on the server and can be read, and every action taken, without
// JavaScript; with it, small modules keep pages up to date, draw plots and follow a feed
// through the same HTTP protocol as everyone else. Nothing is loaded from anywhere else, and
// the Content-Security-Policy allows nothing else.
//
// Who sees and does what is decided by package access: a feed, its consumers and leases are
// shown to who may read or administer it, its rows to who may read it, dead letters and
// other sessions' statements, which hold rows as well, to who administers it.
package console
