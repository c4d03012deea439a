package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// group makes a command that only holds others.
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

func UnknownCommand(parent *cobra.Command, name string) error {
	hint := ""
	if near := parent.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf(" (is %s meant?)", strings.Join(near, " or "))
	}
	return WrongUse(parent, "there is no command %q%s", parent.CommandPath()+" "+name, hint)
}

// takes checks the number of arguments and names what is missing.
func Args(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return WrongUse(cmd, "%s: %s is missing", cmd.CommandPath(), what)
		case len(args) > most:
			return WrongUse(cmd, "%s: %q is one argument too many", cmd.CommandPath(), args[most])
		}
		return nil
	}
}
