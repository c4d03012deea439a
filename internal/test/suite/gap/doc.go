// Package gap tests that a publisher keeps a gap in the sequence numbers open while a transaction may still commit it.
package gap
