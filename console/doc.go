// Package console is rowfeed's web page: the feeds, how they stand, and the entries of
// one of them as they come.
//
// The page is made on the server and can be read without JavaScript; with it, a small
// script reads the feed through the same HTTP protocol as everyone else and shows new
// entries. Nothing is loaded from anywhere else, and the Content-Security-Policy
// allows nothing else.
package console
