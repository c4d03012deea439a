// Package watch wakes waiting readers and sleeping publishers. It decides how often the database is polled, for all of
// them at once, and which watermark wakes which of them. A Watermark is how far a feed's positions have been given.
// The publishers of this process report it, and a poll reads it. The package uses store, dialect and feedtype. Begin
// with Watcher in watch.go; DESIGN.md argues why no wake-up is lost.
package watch
