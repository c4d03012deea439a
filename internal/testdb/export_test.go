package testdb

// SweepFolders is what a process does before it makes folders of its own.
var SweepFolders = sweepFolders
