// Package history decides whether a reader has seen what the database has lost. For sequence feeds it compares terms
// (terms.go). For ULID feeds it compares the identity of the database and the highest positions that this process has
// seen. It also decides when a page may be shown, because no crash can undo what it shows (flush.go). It uses catalog,
// store, dialect and feedtype. Begin with DESIGN.md, which argues what is refused, and why.
package history
