package cli

import (
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/internal/sinks"
)

// SecretToken reads a token from where a flag says: env:NAME or file:PATH. It refuses the token itself, since other
// users could read it in the list of processes.
func (a *App) SecretToken(where string) (string, error) {
	if where == "" {
		return "", nil
	}
	if !strings.HasPrefix(where, "env:") && !strings.HasPrefix(where, "file:") {
		return "", &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "token",
			Cause: "token: it is neither env:NAME nor file:PATH; " +
				"other users of this machine could read a token in a command line",
			Next: "write the token to a file or an environment variable, and name that"}
	}
	text, err := sinks.Resolve("token", where, a.Getenv)
	if err == nil && !admin.IsTokenText(text) {
		err = &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "token",
			Cause: "token: the file or variable does not contain a token",
			Next:  "write there what `rowfeed token add` printed, and nothing else"}
	}
	return text, err
}
