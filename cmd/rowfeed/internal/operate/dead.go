package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

type deadOptions struct {
	consumerFlags
	json bool
	keys []string
	all  bool
}

func newDead(a *cli.App) *cobra.Command {
	cmd := cli.NewGroup("dead", "List, show, retry and drop dead letters",
		`Dead letters are keys that a consumer has set aside because it could not handle them.
All other keys continue. Later versions of such a key join its dead letter, so that
versions keep their order, until the dead letter is retried or dropped.`, `  rowfeed dead list
  rowfeed dead show billing --key 7
  rowfeed dead retry billing --key 7
  rowfeed dead retry billing --all`)
	list := &deadOptions{}
	listCmd := &cobra.Command{
		Use:   "list [CONSUMER]",
		Short: "List dead letters",
		Long: `Lists dead letters, the oldest first: the key, the position of its latest version, how
many later versions have joined it, and the last error. The state is "aside", or
"retry" if an operator has asked the consumer to try the key again.

With --json: [{"consumer":"billing","feed":"orders","shard":0,"data_shard":
0,"key":{"id":7},"generation":1,"position":"12","op":"upsert","state":"aside",
"attempts":6,"collapsed":1,"error":"…","first_at":"2026-01-31T12:00:00Z",
"last_at":"…"}]. shard is the consumer's; data_shard is the feed's, or null.`,
		Example: "  rowfeed dead list\n  rowfeed dead list billing --json",
		Args:    cli.Args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				list.consumer = args[0]
			}
			return list.list(cmd.Context(), a)
		},
	}
	list.bind(listCmd)
	listCmd.Flags().BoolVar(&list.json, "json", false, "print JSON")

	show := &deadOptions{}
	showCmd := &cobra.Command{
		Use:   "show CONSUMER --key K",
		Short: "Show dead letters in full",
		Long: `Shows the dead letter of a key with its whole error, or without --key all dead letters
of the consumer. A key is written as entries show it: the value if it has one column,
else the JSON object.

With --json: the objects of "dead list --json".`,
		Example: "  rowfeed dead show billing --key 7\n  rowfeed dead show billing --key '{\"ns\":\"a\",\"k\":\"b\"}'",
		Args:    cli.Args(1, 1, "the CONSUMER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			show.consumer = args[0]
			return show.show(cmd.Context(), a)
		},
	}
	show.bind(showCmd)
	showCmd.Flags().StringArrayVar(&show.keys, "key", nil, "a `key`; may be repeated")
	showCmd.Flags().BoolVar(&show.json, "json", false, "print JSON")
	cmd.AddCommand(listCmd, showCmd,
		deadVerb(a, "retry", "Try dead letters again",
			`Asks the consumer to try keys again: within a second, or when it is started. It does
so in its own loop, with the present values of each row. A key that fails again stays
set aside.`, "to be tried again by the consumer",
			(*admin.Admin).RetryDeadLetters),
		deadVerb(a, "drop", "Drop dead letters",
			`Drops dead letters: the versions of their keys so far are never delivered. The next
version of such a key is delivered, so "rowfeed republish" brings the key back.`,
			"given up", (*admin.Admin).DropDeadLetters))
	return cmd
}

// deadVerb returns a command that changes dead letters.
func deadVerb(
	a *cli.App, verb, short, long, done string,
	change func(*admin.Admin, context.Context, rowfeed.ConsumerID, json.RawMessage) (int64, error),
) *cobra.Command {
	o := &deadOptions{}
	cmd := &cobra.Command{
		Use:   verb + " CONSUMER (--key K… | --all)",
		Short: short,
		Long:  long,
		Example: fmt.Sprintf("  rowfeed dead %s billing --key 7\n  rowfeed dead %s billing --feed orders --all",
			verb, verb),
		Args: cli.Args(1, 1, "the CONSUMER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.consumer = args[0]
			if o.all == (len(o.keys) > 0) {
				return cli.WrongUse(cmd, "dead %s %s: which keys? Give --key or --all", verb, o.consumer)
			}
			return o.change(cmd.Context(), a, done, change)
		},
	}
	o.bind(cmd)
	cmd.Flags().StringArrayVar(&o.keys, "key", nil, "a `key`; may be repeated")
	cmd.Flags().BoolVar(&o.all, "all", false, "every dead letter of the consumer")
	return cmd
}

func (o *deadOptions) change(
	ctx context.Context, a *cli.App, done string,
	change func(*admin.Admin, context.Context, rowfeed.ConsumerID, json.RawMessage) (int64, error),
) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	keys := []json.RawMessage{nil} // nil means all
	if !o.all {
		letters, err := o.chosen(ctx, s)
		if err != nil {
			return err
		}
		keys = nil
		for _, l := range letters {
			keys = append(keys, l.Key)
		}
	}
	var total int64
	for _, key := range keys {
		n, err := change(s.Admin(), ctx, o.id(), key)
		if err != nil {
			return err
		}
		total += n
	}
	return a.PrintLine("%s: %s %s", o.consumer, cli.Plural(total, "dead letter"), done)
}

// chosen returns the dead letters that --key names, or all of the consumer.
func (o *deadOptions) chosen(ctx context.Context, s *cli.Session) ([]rowfeed.DeadLetter, error) {
	all, err := s.Admin().DeadLetters(ctx, o.id(), nil)
	if err != nil || len(o.keys) == 0 {
		return all, err
	}
	var chosen []rowfeed.DeadLetter
	for _, key := range o.keys {
		before := len(chosen)
		for _, l := range all {
			if isKey(l.Key, key) {
				chosen = append(chosen, l)
			}
		}
		if len(chosen) == before {
			return nil, &rowfeed.Error{Code: rowfeed.UnknownConsumer, Object: o.id().String(),
				Cause: "there is no dead letter with key " + key,
				Next:  "`rowfeed dead list " + o.consumer + "` shows those there are"}
		}
	}
	return chosen, nil
}

// isKey reports whether a user typed this key: its object, or the value of its only column.
func isKey(key json.RawMessage, typed string) bool {
	if admin.SameKey(key, json.RawMessage(typed)) {
		return true
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(key, &members); err != nil || len(members) != 1 {
		return false
	}
	for _, value := range members {
		var text string
		if err := json.Unmarshal(value, &text); err == nil && text == typed {
			return true
		}
		return string(value) == typed
	}
	return false
}

func (o *deadOptions) list(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := s.Admin().DeadLetters(ctx, o.id(), nil)
	switch {
	case err != nil:
		return err
	case o.json:
		return a.PrintJSON(append([]rowfeed.DeadLetter{}, all...))
	case len(all) == 0:
		return a.PrintLine("there are no dead letters")
	}
	var rows []table.Row
	for _, l := range all {
		rows = append(rows, table.Row{l.Consumer, l.Feed, l.Shard, string(l.Key), l.Op, l.Position, l.State, l.Attempts,
			l.Collapsed, l.FirstAt.Format(time.RFC3339), short(l.Error)})
	}
	return a.PrintTable(table.Row{"consumer", "feed", "shard", "key", "op", "position", "state", "attempts", "joined",
		"since", "error"}, rows)
}

// short returns at most 60 characters of the first line of an error.
func short(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return line
}

func (o *deadOptions) show(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	letters, err := o.chosen(ctx, s)
	switch {
	case err != nil:
		return err
	case o.json:
		return a.PrintJSON(append([]rowfeed.DeadLetter{}, letters...))
	case len(letters) == 0:
		return a.PrintLine("there are no dead letters")
	}
	for _, l := range letters {
		if err := a.PrintLine("%s of %s, shard %d: key %s, %s at position %s (generation %d), %s\n  set aside %s, "+
			"last tried or joined %s, %d attempts, %d later versions joined\n  %s",
			l.Consumer, l.Feed, l.Shard, l.Key, l.Op, l.Position, l.Generation, l.State, l.FirstAt.Format(time.RFC3339),
			l.LastAt.Format(time.RFC3339),
			l.Attempts, l.Collapsed, strings.ReplaceAll(l.Error, "\n", "\n  ")); err != nil {
			return err
		}
	}
	return nil
}
