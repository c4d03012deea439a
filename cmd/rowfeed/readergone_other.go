//go:build !unix

package main

import "io"

// readerGone cannot be told here; the next write will.
func readerGone(io.Writer) bool { return false }
