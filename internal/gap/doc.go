// Package gap tracks the sequence numbers with which changes may still be committed. It decides which ranges of numbers a
// scan for changes reads, and when a gap may be closed: when every transaction that could own one of its numbers has
// ended. It uses catalog, dialect and feedtype. Begin with Tracker.Scan in gap.go; writers.go waits for open
// transactions, numbers.go has the arithmetic of sets. DESIGN.md argues why no number is missed.
package gap
