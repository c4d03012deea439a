// Package frozen keeps the interfaces that users of rowfeed see: answers over HTTP, and the documentation of public
// packages. It has tests only. cmd/rowfeed/frozen_test.go keeps the output of commands.
package frozen
