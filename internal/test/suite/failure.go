package suite

import "github.com/rowfeed/rowfeed"

// ErrorOf returns the error of a stored failure, or "" if there is none.
func ErrorOf(f *rowfeed.Failure) string {
	if f == nil {
		return ""
	}
	return f.Error
}
