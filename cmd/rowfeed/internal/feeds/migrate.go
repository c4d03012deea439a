package feeds

import (
	"context"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/spf13/cobra"
)

func newInit(a *cli.App) *cobra.Command {
	o := &migrateUpOptions{}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create rowfeed's own tables, or upgrade them to the newest version",
		Long: `Creates rowfeed's own tables, or upgrades them to the newest version. For SQLite it
also creates the file if it is missing. "rowfeed migrate up" is the same command.
Running it again changes nothing. Several processes may run it at once: they take
turns.

--print needs no server: it prints the SQL for a database that has none of the tables.`,
		Example: `  rowfeed init
  rowfeed init --db postgres://me:secret@localhost/shop
  rowfeed init --prefix ''                        # tables without a prefix`,
		Args: cli.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), a) },
	}
	cmd.Flags().BoolVar(&o.print, "print", false, "print the SQL instead of running it; needs no server")
	return cmd
}

func newMigrate(a *cli.App) *cobra.Command {
	cmd := cli.NewGroup("migrate", "Create, upgrade or remove rowfeed's own tables",
		`Creates, upgrades or removes rowfeed's own tables, one version after the other, under
a lock. Several processes may run these commands at once: they take turns.`, `  rowfeed migrate up
  rowfeed migrate status`)
	up := newInit(a)
	up.Use, up.Example = "up", "  rowfeed migrate up"
	up.Long = strings.Replace(up.Long, "rowfeed migrate up", "rowfeed init", 1)
	down := &migrateDownOptions{}
	statusCmd := &cobra.Command{
		Use:   "status",
		Short: "List the versions and which of them the database has",
		Long: `Lists the versions of rowfeed's own tables, and which of them the database has.

With --json: [{"version":1,"title":"…","applied":true}].`,
		Example: "  rowfeed migrate status --json",
		Args:    cli.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return migrationStatus(cmd.Context(), a) },
	}
	a.AddOutput(statusCmd, true)
	cmd.AddCommand(up, &cobra.Command{
		Use:   "down",
		Short: "Remove rowfeed's own tables",
		Long: `Removes rowfeed's own tables. It refuses to do so while there are feeds: drop them
first. Afterwards the database's schema is as it was before "rowfeed init".`,
		Example: "  rowfeed feed drop kv && rowfeed migrate down",
		Args:    cli.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return down.run(cmd.Context(), a) },
	}, statusCmd)
	return cmd
}

type migrateUpOptions struct{ print bool }

func (o *migrateUpOptions) run(ctx context.Context, a *cli.App) error {
	if o.print {
		return o.printSQL(a)
	}
	s, err := a.ConnectTo(ctx, open.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	applied, err := s.Migrate(ctx)
	if err != nil {
		return err
	}
	database := open.Redact(a.URL)
	switch {
	case len(applied) == 0:
		return a.PrintLine("%s: rowfeed's tables are there already, nothing changed", database)
	case applied[0] == dialect.FirstVersion:
		return a.PrintLine("%s: rowfeed's tables created (version %d)", database, slices.Max(applied))
	}
	return a.PrintLine("%s: rowfeed's tables upgraded to version %d", database, slices.Max(applied))
}

// printSQL prints the script that makes rowfeed's tables. It connects to no database.
func (o *migrateUpOptions) printSQL(a *cli.App) error {
	cfg, _, err := a.Settings()
	if err != nil {
		return err
	}
	d, err := open.Dialect(a.URL)
	if err != nil {
		return err
	}
	steps, err := rowfeed.PrintMigrate(d, &cfg)
	if err != nil {
		return err
	}
	return PrintScript(a, d, steps)
}

type migrateDownOptions struct{}

func (o *migrateDownOptions) run(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	versions, err := s.Admin().Migrations(ctx)
	if err != nil {
		return err
	}
	if err := s.MigrateDown(ctx); err != nil {
		return err
	}
	if !slices.ContainsFunc(versions, func(v rowfeed.MigrationStatus) bool { return v.Applied }) {
		return a.PrintLine("%s: rowfeed's tables are not there, nothing changed", open.Redact(a.URL))
	}
	return a.PrintLine("%s: rowfeed's tables removed", open.Redact(a.URL))
}

func migrationStatus(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	versions, err := s.Admin().Migrations(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(versions)
	}
	var rows []table.Row
	for _, v := range versions {
		state := "missing"
		if v.Applied {
			state = "applied"
		}
		rows = append(rows, table.Row{v.Version, v.Title, state})
	}
	return a.PrintTable(table.Row{"version", cli.Text("title"), "state"}, rows)
}
