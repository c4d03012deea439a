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

// harmless are the flags with which an administrative command changes nothing.
var harmless = []string{"print", "dry-run"}

// act is the entry of the audit log for the running command. It begins when the command has opened its database, and
// ends with the command.
type act struct {
	admin.Act
	session *Session          // the last that the command opened
	close   []func() error    // close the sessions, which stay open until the end is recorded
	end     func(error) error // records the end; nil while the beginning is not recorded
}

// Record makes the commands with these paths write to the audit log: their arguments, and the flags of their own that
// were given. Those contain no secrets. The log leaves out the global flags, since --db may contain a password.
func (a *App) Record(root *cobra.Command, paths []string) {
	a.recorded = make(map[*cobra.Command]bool)
	for _, path := range paths {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil || cmd.CommandPath() != root.Name()+" "+path {
			panic("rowfeed: there is no command " + path)
		}
		a.recorded[cmd] = true
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
				if f.Changed && f.Name != "json" && f.Name != "output" {
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

// beginAct records the command before it changes anything. If that fails, the command runs all the same: init runs
// before the tables exist, `unblock` has to work if the database accepts no writes, and a user with the database's
// password could make the change without rowfeed.
func (a *App) beginAct(ctx context.Context, s *Session) {
	if a.act == nil {
		return
	}
	a.act.close = append(a.act.close, s.Close)
	s.Close = func() error { return nil }
	if a.act.session = s; a.act.end == nil {
		a.act.end, _ = s.Admin().BeginAct(ctx, a.act.Act) // endAct tries again, and reports the error
	}
}

// endAct records how the command ended. If that fails, it prints a warning, but not after a command that removed
// rowfeed's tables, and the log with them.
func (a *App) endAct(ctx context.Context, outcome error) {
	act := a.act
	a.act = nil
	if act.session == nil {
		return // the command ended before it opened a database
	}
	defer func() {
		for _, closeSession := range act.close {
			_ = closeSession()
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

// whoami returns the user of the operating system and the host, as user@host.
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
