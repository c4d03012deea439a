// Package capture tests that every way to change a table is captured, whatever becomes of the table meanwhile.
package capture
