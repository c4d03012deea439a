//go:build !linux

package sqlite

import "github.com/rowfeed/rowfeed/dialect"

// writers does not know here.
func writers(string) ([]int, bool) { return nil, false }

func process(int) dialect.Blocker { return dialect.Blocker{} }
