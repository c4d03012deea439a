package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/spf13/cobra"
)

func newAudit(a *cli.App) *cobra.Command {
	cmd := cli.NewGroup("audit", "Show what operators have done",
		`All changes that operators make to feeds, consumers, dead letters, leases and tokens
are recorded in the database, by the commands and by the console: who made it, when
(on the database's clock), what it was, and how it ended. A change is recorded before
it is made; an entry that stays "begun" was interrupted. The log contains no secrets.`,
		"  rowfeed audit list\n  rowfeed audit purge --older-than 400d")
	o := &auditListOptions{}
	list := &cobra.Command{
		Use:   "list",
		Short: "List what was done, the newest first",
		Long: `Lists the audit log, the newest first. The outcome is "done", "refused: " with the
code of the error, or "begun". --before continues below the last id.

With --json: [{"id":7,"at":"2026-01-31T12:00:00Z","actor":"me@host","act":
"consumer pause","object":"billing","detail":"--feed=orders","outcome":"done"}].`,
		Example: "  rowfeed audit list --limit 20\n  rowfeed audit list --before 1000 --json",
		Args:    cli.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), a) },
	}
	list.Flags().Int64Var(&o.before, "before", 0, "only entries with an id below this `id`")
	list.Flags().IntVar(&o.limit, "limit", feedtype.DefaultLimit,
		fmt.Sprintf("at most this many entries, 1 to %d", feedtype.MaxLimit))
	a.AddOutput(list, true)
	p := &auditPurgeOptions{olderThan: cli.Duration{Duration: admin.AuditRetention}}
	purge := &cobra.Command{
		Use:   "purge",
		Short: "Remove old entries of the audit log",
		Long: `Removes entries of the audit log that are older than --older-than, at least a day. The
purge is recorded, too. rowfeed removes no entries by itself: run this command now and
then, with a login that may delete from the log. Logins of servers and operators need
not have that right.`,
		Example: "  rowfeed audit purge\n  rowfeed audit purge --older-than 90d",
		Args:    cli.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context(), a) },
	}
	purge.Flags().Var(&p.olderThan, "older-than", "only entries older than this")
	purge.Flags().Lookup("older-than").DefValue = "400d"
	cmd.AddCommand(list, purge)
	return cmd
}

type auditPurgeOptions struct{ olderThan cli.Duration }

func (o *auditPurgeOptions) run(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	n, err := s.Admin().PurgeActs(ctx, o.olderThan.Duration)
	if err != nil {
		return err
	}
	return a.PrintLine("%s deleted from the audit log", cli.Plural(n, "act"))
}

type auditListOptions struct {
	before int64
	limit  int
}

func (o *auditListOptions) run(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	log, err := s.Admin().Acts(ctx, o.before, o.limit)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(append([]admin.Act{}, log...))
	case len(log) == 0:
		return a.PrintLine("the audit log has no acts to show")
	}
	var rows []table.Row
	for _, act := range log {
		rows = append(rows,
			table.Row{act.ID, act.At.Format(time.RFC3339), act.Actor, act.Act, act.Object, act.Detail, act.Outcome})
	}
	return a.PrintTable(table.Row{cli.Wide("id"), "at", "actor", "act", cli.Text("object"), cli.Wide("detail"),
		cli.Text("outcome")}, rows)
}
