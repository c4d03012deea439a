// Package gap tracks the sequence numbers of changes that may still be committed. It decides which ranges of them a scan
// for changes has to read, and when a gap may be closed: when every transaction that could own one of its numbers has
// ended. It uses catalog, dialect and feedtype. Begin with gap.go; DESIGN.md argues why no number is missed.
package gap
