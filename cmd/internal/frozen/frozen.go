// Package frozen keeps what users of rowfeed see: answers over HTTP, and the documentation of public packages. It has
// tests only; what commands print is kept by cmd/rowfeed/frozen_test.go.
package frozen
