// Package values tests that values and keys of every type arrive as they were written.
package values
