package main

import (
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

func newConfig(a *cli.App) *cobra.Command {
	cmd := cli.NewGroup("config", "Check rowfeed.yaml, and explain its keys",
		`Checks rowfeed.yaml, and explains its keys. Every key may be left out; a flag of the
command line wins over the file, and so does ROWFEED_DB over its key db.`, `  rowfeed config check
  rowfeed config reference`)
	cmd.AddCommand(&cobra.Command{
		Use:   "check [FILE]",
		Short: "Say whether a configuration file is in order",
		Long: `Says whether a configuration file is in order, or names the line, the key and what it
takes; exit 1 then. Without FILE it is that of --config, or rowfeed.yaml. Values are
compared with the schema alone: no database is asked, no env:NAME or file:PATH looked
at. It is what every command does that reads the file.`,
		Example: `  rowfeed config check
  rowfeed config check /etc/rowfeed/rowfeed.yaml`,
		Args: cli.Args(0, 1, ""),
		RunE: func(_ *cobra.Command, args []string) error {
			path := a.ConfigPath
			if len(args) == 1 {
				path = args[0]
			}
			if path == "" {
				path = config.FileName // which must be there, if it is to be checked
			}
			if _, err := config.Load(path); err != nil {
				return err
			}
			return a.PrintLine("%s: in order", path)
		},
	}, &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of rowfeed.yaml",
		Long: `Prints the JSON schema of rowfeed.yaml, for editors and for whoever checks files before
they are rolled out.`,
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
			"what it is for, what it takes, and what\nholds without it.",
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
