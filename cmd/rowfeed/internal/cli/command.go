package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// NewGroup returns a command that only has subcommands.
func NewGroup(use, short, long, example string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return UnknownCommand(cmd, args[0])
		}}
}

// UnknownCommand returns the error for a command that parent does not have.
func UnknownCommand(parent *cobra.Command, name string) error {
	hint := ""
	if near := parent.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf(" (did you mean %s?)", strings.Join(near, " or "))
	}
	return &usageError{parent, fmt.Errorf("there is no command %q%s", parent.CommandPath()+" "+name, hint)}
}

// Args accepts between least and most arguments. what names the missing ones in the error.
func Args(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return WrongUse(cmd, "%s is missing", what)
		case len(args) > most:
			return WrongUse(cmd, "%q is one argument too many", args[most])
		case slices.Contains(args, ""): // which would select everything in some commands
			return WrongUse(cmd, "an argument is empty, perhaps because a variable is not set")
		}
		return nil
	}
}
