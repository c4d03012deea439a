package install

import (
	"fmt"

	"github.com/rowfeed/rowfeed/feedtype"
)

// feedError is an error about a feed. The format and its arguments are the cause; next says what to do.
func feedError(code feedtype.Code, feed, next, format string, args ...any) error {
	object := feedtype.FeedObject(feed)
	return &feedtype.Error{Code: code, Object: object, Cause: fmt.Sprintf(format, args...), Next: next}
}

// tableError is an error about a table of the user.
func tableError(code feedtype.Code, table feedtype.TableName, next, format string, args ...any) error {
	object := fmt.Sprintf("table %q", table.String())
	return &feedtype.Error{Code: code, Object: object, Cause: fmt.Sprintf(format, args...), Next: next}
}
