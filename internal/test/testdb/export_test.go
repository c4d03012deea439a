package testdb

import "testing"

// SweepFolders is what a process does before it makes its folders.
var SweepFolders = sweepFolders

// Reserve is what a process does before it uses a port.
var Reserve = reserve

// Excluded returns why a test does not run on the engine.
func Excluded(t *testing.T, e Engine) string { return e.excluded(t) }
