// Package read has the commands that read a feed from a database, or from a server: fetch and tail.
package read
