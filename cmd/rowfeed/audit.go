package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// administrative are the commands that are in the audit log: whatever an operator changes
// with the feeds and those who read them. What publishes, reads or receives is in no log.
var administrative = []string{
	"init", "migrate up", "migrate down",
	"feed add", "feed drop", "feed upgrade", "feed bump", "feed backfill", "feed grant", "feed revoke",
	"repair", "republish", "unpublish", "unblock",
	"consumer pause", "consumer resume", "consumer reset", "consumer drop", "consumer seek", "consumer purge",
	"dead retry", "dead drop", "lease release",
	"token add", "token revoke", "audit purge",
}

// harmless are flags with which an administrative command changes nothing.
var harmless = []string{"print", "dry-run"}

// act is what the running command is in the audit log. It begins when the command has its
// database, and ends when the command has.
type act struct {
	admin.Act
	session *session // the last one; none is closed before the act has ended
	done    []func() error
	end     func(error) error // nil while it is not recorded
}

// audit has every administrative command of the tree recorded, with its arguments and those
// of its own flags that were given; they hold no secrets. The flags that all commands share
// (--db has a password) stay out.
func (a *app) audit(root *cobra.Command) {
	for _, path := range administrative {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil || cmd.CommandPath() != root.Name()+" "+path {
			panic("rowfeed: there is no command " + path)
		}
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if slices.ContainsFunc(harmless, func(name string) bool {
				f := cmd.Flags().Lookup(name)
				return f != nil && f.Value.String() == "true"
			}) {
				return run(cmd, args)
			}
			var detail []string
			cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				if f.Changed && f.Name != "json" {
					detail = append(detail, "--"+f.Name+"="+f.Value.String())
				}
			})
			a.act = &act{Act: admin.Act{Actor: whoami(), Act: path, Object: strings.Join(args, " "),
				Detail: strings.Join(detail, " ")}}
			err := run(cmd, args)
			a.endAct(cmd.Context(), err)
			return err
		}
	}
}

// beginAct records that the command is about to do what it does. Where rowfeed's tables are not
// there yet (init makes them), or a login may not write to the log, it goes on: whoever has the
// database's password could do it without rowfeed, and `unblock` is for when nothing can be
// written.
func (a *app) beginAct(ctx context.Context, s *session) {
	if a.act == nil {
		return
	}
	a.act.done = append(a.act.done, s.done)
	s.done = func() error { return nil }
	if a.act.session = s; a.act.end == nil {
		a.act.end, _ = s.Admin().BeginAct(ctx, a.act.Act) // endAct tries again, and says why not
	}
}

// endAct records how the command ended, or says that it is in no log. Where it has removed
// rowfeed's tables the log is gone, too.
func (a *app) endAct(ctx context.Context, outcome error) {
	act := a.act
	a.act = nil
	if act.session == nil {
		return // nothing was asked of a database
	}
	defer func() {
		for _, done := range act.done {
			_ = done()
		}
	}()
	var err error
	if act.end == nil {
		act.end, err = act.session.Admin().BeginAct(context.WithoutCancel(ctx), act.Act)
	}
	if err == nil {
		err = act.end(outcome)
	}
	if err != nil && !errors.Is(err, rowfeed.NotInitialized) && !errors.Is(err, rowfeed.SchemaVersion) {
		fmt.Fprintln(a.stderr, "rowfeed: not in the audit log: "+a.plain(err))
	}
}

// whoami is the user of the operating system that runs the command.
func whoami() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

func newAudit(a *app) *cobra.Command {
	cmd := group("audit", "Show what operators have done",
		`Whatever an operator does with feeds, consumers, dead letters, leases and tokens is
recorded in the database, by commands and by the console alike: who, when (on the
database's clock), what, and how it ended. It is recorded before it is done; what
stays "begun" was broken off. There are no secrets in the log.`,
		"  rowfeed audit list\n  rowfeed audit purge --older-than 400d")
	o := &auditListOptions{}
	list := &cobra.Command{
		Use:   "list",
		Short: "List what was done, the newest first",
		Long: `Lists the audit log, the newest first. The outcome is "done", "refused: " with the
error's code, or "begun". --before goes on below the last id.

With --json: [{"id":7,"at":"2026-01-31T12:00:00Z","actor":"me@host","act":
"consumer pause","object":"billing","detail":"--feed=orders","outcome":"done"}].`,
		Example: "  rowfeed audit list --limit 20\n  rowfeed audit list --before 1000 --json",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), a) },
	}
	list.Flags().Int64Var(&o.before, "before", 0, "only what has an id below this `id`")
	list.Flags().IntVar(&o.limit, "limit", feedtype.DefaultLimit,
		fmt.Sprintf("at most so many, 1 to %d", feedtype.MaxLimit))
	list.Flags().BoolVar(&o.json, "json", false, "print JSON")
	p := &auditPurgeOptions{olderThan: duration{Duration: admin.AuditRetention}}
	purge := &cobra.Command{
		Use:   "purge",
		Short: "Forget what was done long ago",
		Long: `Removes from the audit log what was done longer ago than --older-than, a day at least.
That is recorded, too. Nothing is removed by itself: run it now and then, under a login
that may delete from the log, which those of servers and operators need not.`,
		Example: "  rowfeed audit purge\n  rowfeed audit purge --older-than 90d",
		Args:    takes(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context(), a) },
	}
	purge.Flags().Var(&p.olderThan, "older-than", "only what was done longer ago than this (default 400d)")
	cmd.AddCommand(list, purge)
	return cmd
}

type auditPurgeOptions struct{ olderThan duration }

func (o *auditPurgeOptions) run(ctx context.Context, a *app) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.done()
	n, err := s.Admin().PurgeActs(ctx, o.olderThan.Duration)
	if err != nil {
		return err
	}
	return a.say("%s forgotten", plural(n, "act"))
}

type auditListOptions struct {
	before int64
	limit  int
	json   bool
}

func (o *auditListOptions) run(ctx context.Context, a *app) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.done()
	log, err := s.Admin().Acts(ctx, o.before, o.limit)
	switch {
	case err != nil:
		return err
	case o.json:
		return a.printJSON(append([]admin.Act{}, log...))
	case len(log) == 0:
		return a.say("nothing is recorded")
	}
	var rows []table.Row
	for _, act := range log {
		rows = append(rows,
			table.Row{act.ID, act.At.Format(time.RFC3339), act.Actor, act.Act, act.Object, act.Detail, act.Outcome})
	}
	return a.printTable(table.Row{"id", "at", "actor", "act", "object", "detail", "outcome"}, rows)
}
