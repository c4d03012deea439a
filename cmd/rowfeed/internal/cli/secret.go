package cli

import (
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/internal/sinks"
)

// secretToken is the token that a flag points at; in the flag itself it would stand in the list
// of processes.
func (a *App) SecretToken(where string) (string, error) {
	if where == "" {
		return "", nil
	}
	if !strings.HasPrefix(where, "env:") && !strings.HasPrefix(where, "file:") {
		return "", &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "token",
			Cause: "token: it is neither env:NAME nor file:PATH; here, others on this machine could read it",
			Next:  "put the token into a file, or a variable of the environment, and name that"}
	}
	text, err := sinks.Resolve("token", where, a.Getenv)
	if err == nil && !admin.IsTokenText(text) {
		err = &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "token",
			Cause: "token: what stands there is no token",
			Next:  "put there what `rowfeed token add` has printed, and nothing else"}
	}
	return text, err
}
