package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// group makes a command that only holds others.
func group(use, short, long, example string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		}}
}

func unknownCommand(parent *cobra.Command, name string) error {
	hint := ""
	if near := parent.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf(" (is %s meant?)", strings.Join(near, " or "))
	}
	return usage(parent, "there is no command %q%s", parent.CommandPath()+" "+name, hint)
}

// takes checks the number of arguments and names what is missing.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(cmd, "%s: %s is missing", cmd.CommandPath(), what)
		case len(args) > most:
			return usage(cmd, "%s: %q is one argument too many", cmd.CommandPath(), args[most])
		}
		return nil
	}
}
