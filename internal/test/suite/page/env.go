package page

import (
	"strings"

	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// inside counts the goroutines that are in the function.
func inside(x *suite.Env, function string) int { return strings.Count(suite.Stacks(), function) }
