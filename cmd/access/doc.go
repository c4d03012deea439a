// Package access decides who may do what with which feed: identities and their rights,
// and in between an HTTP server and its feeds. It stands above package feedhttp and below
// the console and the server.
package access
