// Package history remembers what this process knows about a feed's positions: the highest that the database has shown,
// and the highest that is known to be on its disk. It decides when a database was set back or is another one, and when
// a page may be shown because no crash can take it back. It uses catalog, store, dialect and feedtype. Begin with
// history.go; DESIGN.md argues what is refused, and why.
package history
