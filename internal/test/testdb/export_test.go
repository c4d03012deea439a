package testdb

// SweepFolders is what a process does before it makes folders of its own.
var SweepFolders = sweepFolders

// Reserve is what a process does before it takes a port.
var Reserve = reserve
