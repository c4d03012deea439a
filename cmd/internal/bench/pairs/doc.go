// Package pairs compares the speed of two builds of the rowfeed command. It runs `rowfeed bench
// --json` of both in turns, base and new, and prints the median of each figure and the ratio. Each
// build measures itself: the keys of that JSON are all that the two builds have to share.
//
// scripts/bench.sh builds a commit and the working tree, and runs TestPairs with both.
package pairs
