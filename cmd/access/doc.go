// Package access decides which client may do what with which feed. It has identities and their rights, and the layer
// between an HTTP server and its feeds. It uses package feedhttp, and is used by the console and the server.
package access
