package main

import (
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

func newConfig(a *cli.App) *cobra.Command {
	cmd := cli.NewGroup("config", "Check rowfeed.yaml, and explain its keys",
		`Checks rowfeed.yaml, and explains its keys. Every key is optional. A flag on the command
line overrides the file, and ROWFEED_DB overrides its key db.`, `  rowfeed config check
  rowfeed config reference`)
	cmd.AddCommand(&cobra.Command{
		Use:   "check [FILE]",
		Short: "Check whether a configuration file is valid",
		Long: `Reports whether a configuration file is valid. If not, the command names every mistake
with its line, the key and the values that it accepts, and exits with 1. Without FILE
the command checks the file of --config, or rowfeed.yaml. It compares values with the
schema only: it does not connect to a database, and does not read env:NAME or file:PATH.
Every command that reads the file makes the same check.`,
		Example: `  rowfeed config check
  rowfeed config check /etc/rowfeed/rowfeed.yaml`,
		Args: cli.Args(0, 1, ""),
		RunE: func(_ *cobra.Command, args []string) error {
			path := a.ConfigPath
			if len(args) == 1 {
				path = args[0]
			}
			if path == "" {
				path = config.FileName // unlike an empty path, this is an error if the file is missing
			}
			if _, err := config.Load(path); err != nil {
				return err
			}
			return a.PrintLine("%s: in order", path)
		},
	}, &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of rowfeed.yaml",
		Long: `Prints the JSON schema of rowfeed.yaml, for editors, and for tools that check files
before they are deployed.`,
		Example: "  rowfeed config schema > rowfeed.schema.json",
		Args:    cli.Args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Stdout.Write(config.Schema)
			return err
		},
	}, &cobra.Command{
		Use:   "reference",
		Short: "Explain every key of rowfeed.yaml",
		Long: "Explains every key of rowfeed.yaml, in Markdown: " +
			"its purpose, values and default.",
		Example: "  rowfeed config reference",
		Args:    cli.Args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			text, err := config.Reference()
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write([]byte(text))
			return err
		},
	})
	return cmd
}
