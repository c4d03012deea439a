package main

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/internal/bench"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

// completionTime is the maximum time that a shell waits for names from the database. Completing no name is better than
// waiting for a server that does not answer.
const completionTime = time.Second

// shells are the shells that completion supports.
var shells = map[string]func(root *cobra.Command, out io.Writer) error{
	"bash":       func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) },
	"zsh":        (*cobra.Command).GenZshCompletion,
	"fish":       func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) },
	"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
}

var shellNames = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for bash, zsh, fish or powershell",
		Long: `Prints a script with which bash, zsh, fish or powershell completes command lines of
rowfeed. Names of feeds, consumers, leases and tokens come from the database (--db,
ROWFEED_DB, rowfeed.yaml). If the database does not answer within a second, names are
not completed.

  bash        source <(rowfeed completion bash), in ~/.bashrc; needs the package
              bash-completion
  zsh         rowfeed completion zsh > "${fpath[1]}/_rowfeed"
  fish        rowfeed completion fish > ~/.config/fish/completions/rowfeed.fish
  powershell  rowfeed completion powershell | Out-String | Invoke-Expression`,
		Example:   "  rowfeed completion bash\n  rowfeed completion zsh",
		ValidArgs: shellNames,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cli.Args(1, 1, "the SHELL ("+strings.Join(shellNames, ", ")+")")(cmd, args); err != nil {
				return err
			}
			if shells[args[0]] == nil {
				return cli.WrongUse(cmd, "%q is not one of: %s", args[0],
					strings.Join(shellNames, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root(), a.Stdout) },
	}
}

// lister returns the names that a word of a command line can be.
type lister func(ctx context.Context, s *cli.Session) ([]string, error)

func feedNames(ctx context.Context, s *cli.Session) (names []string, err error) {
	feeds, err := s.Feeds(ctx)
	for _, f := range feeds {
		names = append(names, f.Name())
	}
	return names, err
}

func consumerNames(ctx context.Context, s *cli.Session) (names []string, err error) {
	all, err := s.Admin().Consumers(ctx, rowfeed.ConsumerID{})
	for _, c := range all {
		names = append(names, c.Consumer)
	}
	return slices.Compact(names), err // the consumers are sorted by name
}

func leaseNames(ctx context.Context, s *cli.Session) (names []string, err error) {
	all, err := s.Admin().CurrentLeases(ctx)
	for _, l := range all {
		names = append(names, l.Name)
	}
	return names, err
}

// tokenNames returns the names of tokens that can still be revoked.
func tokenNames(ctx context.Context, s *cli.Session) (names []string, err error) {
	all, err := s.Admin().Tokens(ctx)
	for _, t := range all {
		if t.State == admin.TokenHolds {
			names = append(names, t.Name)
		}
	}
	return names, err
}

// wordNames has the lister of each placeholder of a usage line. namesOf overrides it for commands whose NAME is not the
// name of a feed.
var (
	wordNames = map[string]lister{"NAME": feedNames, "CONSUMER": consumerNames}
	namesOf   = map[string]lister{
		"rowfeed lease release": leaseNames,
		"rowfeed token revoke":  tokenNames,
		"rowfeed feed add":      nil, // the name is a new one
		"rowfeed token add":     nil,
	}
	flagNames  = map[string]lister{"feed": feedNames, "consumer": consumerNames}
	flagValues = map[string][]string{
		"auth": {"tokens", "none"}, "right": {"read", "publish", "administer"},
		"mode": {"sequence", "outbox", "blocking"}, "capture": {"trigger", "app", "column"},
		"after": {"now", "at:"}, "db": {"sqlite:", "postgres://", "mysql://", "mariadb://"},
	}
	flagFiles = map[string][]string{"config": {"yaml", "yml"}}
)

// complete adds completion to every command of a tree. Other words are not completed: by default, a shell would offer
// the files of the working directory.
func complete(a *cli.App, root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for _, c := range commands(root) {
		word, _, _ := strings.Cut(strings.TrimPrefix(c.Use, c.Name()+" "), " ")
		many := strings.Contains(word, "…")
		word = strings.Trim(word, "[]…")
		names, special := namesOf[c.CommandPath()]
		if !special {
			names = wordNames[word]
		}
		switch {
		case names != nil:
			c.ValidArgsFunction = func(
				cmd *cobra.Command, args []string, _ string,
			) ([]string, cobra.ShellCompDirective) {
				if len(args) > 0 && !many {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return fromDatabase(cmd, a, names, args), cobra.ShellCompDirectiveNoFileComp
			}
		case word == "MEASURE":
			c.ValidArgs = bench.Measures
		case word == "DIR":
			c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
		}
		completeFlags(a, c)
	}
}

func completeFlags(a *cli.App, c *cobra.Command) {
	register := func(flag string, f cobra.CompletionFunc) {
		if c.LocalNonPersistentFlags().Lookup(flag) != nil || c.PersistentFlags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, f) // it fails only if the flag is missing or has a function already
		}
	}
	for flag, names := range flagNames {
		register(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return fromDatabase(cmd, a, names, nil), cobra.ShellCompDirectiveNoFileComp
		})
	}
	for flag, values := range flagValues {
		register(flag,
			cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
	}
	for flag, endings := range flagFiles {
		register(flag, cobra.FixedCompletions(endings, cobra.ShellCompDirectiveFilterFileExt))
	}
}

// fromDatabase returns names from the database, except those that the command line already has. It returns none if the
// database fails, and prints nothing, because a message would end up in the line that the user is typing.
func fromDatabase(cmd *cobra.Command, a *cli.App, names lister, given []string) []string {
	a.Stderr = io.Discard
	if a.Environment(cmd) != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(cmd.Context(), cmp.Or(a.CompletionTimeout, completionTime))
	defer stop()
	s, err := a.Connect(ctx)
	if err != nil {
		return nil
	}
	defer s.Close()
	all, err := names(ctx, s)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(given, name) })
}
