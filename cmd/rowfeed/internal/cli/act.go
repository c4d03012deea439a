package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// harmless are flags with which an administrative command changes nothing.
var harmless = []string{"print", "dry-run"}

// act is what the running command is in the audit log. It begins when the command has its
// database, and ends when the command has.
type act struct {
	admin.Act
	session *Session // the last one; none is closed before the act has ended
	done    []func() error
	end     func(error) error // nil while it is not recorded
}

// record has the commands of the tree that paths name recorded, with their arguments and those
// of their own flags that were given; they hold no secrets. The flags that all commands share
// (--db has a password) stay out.
func (a *App) Record(root *cobra.Command, paths []string) {
	for _, path := range paths {
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
func (a *App) beginAct(ctx context.Context, s *Session) {
	if a.act == nil {
		return
	}
	a.act.done = append(a.act.done, s.Close)
	s.Close = func() error { return nil }
	if a.act.session = s; a.act.end == nil {
		a.act.end, _ = s.Admin().BeginAct(ctx, a.act.Act) // endAct tries again, and says why not
	}
}

// endAct records how the command ended, or says that it is in no log. Where it has removed
// rowfeed's tables the log is gone, too.
func (a *App) endAct(ctx context.Context, outcome error) {
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
		fmt.Fprintln(a.Stderr, "rowfeed: not in the audit log: "+a.ErrorText(err))
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
