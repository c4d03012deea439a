// Package gap tests that a sequence number that was skipped is waited for while it may still be committed.
package gap
