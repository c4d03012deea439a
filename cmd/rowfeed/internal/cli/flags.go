package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/nearest"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Environment sets the flags of a command that its command line does not give, from environment variables:
// --shard-count from ROWFEED_SHARD_COUNT. An empty variable counts as not given. The own flags of a command of the
// audit log have no variable, except -o: a variable that is meant for another command, such as ROWFEED_TO for a
// relay, must not choose what is changed.
func (a *App) Environment(cmd *cobra.Command) (err error) {
	own := cmd.LocalNonPersistentFlags()
	format := cmd.Flags().Changed("output") || cmd.Flags().Changed("json")
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := "ROWFEED_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value := a.Getenv(name)
		switch {
		case err != nil, value == "", f.Changed, f.Hidden, f.Name == "help", f.Name == "version":
			return
		case f.Name == "output", f.Name == "json":
			if format { // one of them overrides the variable of the other
				return
			}
		case a.recorded[cmd] && own.Lookup(f.Name) != nil:
			return
		case name == config.EnvDB: // Settings reads it, because the demo does not use it
			return
		case f.Name == "token": // the variable holds the token itself
			value = "env:" + name
		}
		if wrong := cmd.Flags().Set(f.Name, value); wrong != nil {
			err = flagError(cmd, name, wrong)
		}
	})
	return err
}

// FlagError returns the error for a flag that cannot be parsed.
func FlagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		return UnknownCommand(cmd, args[0]) // the flag may be one of that command
	}
	if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
		return flagError(cmd, "--"+wrong.GetFlag().Name, err)
	}
	if missing := (*pflag.ValueRequiredError)(nil); errors.As(err, &missing) {
		return WrongUse(cmd, "--%s needs a value", missing.GetFlag().Name)
	}
	unknown := (*pflag.NotExistError)(nil)
	if !errors.As(err, &unknown) {
		return WrongUse(cmd, "%v", err)
	}
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		return WrongUse(cmd, "there is no flag -%s", name)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := nearest.Name(name, names); near != "" {
		return WrongUse(cmd, "there is no flag --%s (did you mean --%s?)", name, near)
	}
	return WrongUse(cmd, "there is no flag --%s", name)
}

// flagError says what value a flag accepts, in place of the texts of package strconv. name is the flag's or that of its
// environment variable.
func flagError(cmd *cobra.Command, name string, err error) error {
	wrong := (*pflag.InvalidValueError)(nil)
	if !errors.As(err, &wrong) {
		return WrongUse(cmd, "%s: %v", name, err)
	}
	wanted := map[string]string{"int": "a whole number", "int64": "a whole number", "float64": "a number",
		"bool": "true or false", "duration": "a duration such as 30s or 5m"}[wrong.GetFlag().Value.Type()]
	cause := fmt.Sprintf("%q is not %s", wrong.GetValue(), wanted)
	if _, ours := wrong.GetFlag().Value.(*Duration); wanted == "" || ours {
		cause = wrong.Unwrap().Error() // of a type of ours, or of a list with quotes
	}
	return WrongUse(cmd, "%s: %s", name, cause)
}
