// Package history tells whether a reader has seen what the database has lost. For sequence feeds, terms tell it
// (terms.go); for ULID feeds, the identity of the database and the highest positions that this process has seen. It
// also decides when a page may be shown because no crash can take it back (flush.go). It uses catalog, store, dialect
// and feedtype. Begin with DESIGN.md, which argues what is refused, and why.
package history
