// Package watch wakes those who wait for entries, and publishers asleep. It decides when the database is looked at, for
// all of them at once, and what a look has to find for one of them to wake. Of feeds it knows how far they are (a
// Standing), which a publisher of this process tells it and a look finds. It uses store, dialect and feedtype. Begin
// with watch.go.
package watch
