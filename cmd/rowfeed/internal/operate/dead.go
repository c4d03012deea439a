package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/spf13/cobra"
)

// deadOptions are the flags that select dead letters.
type deadOptions struct {
	consumerFlags
	error string
	keys  letterKeys
}

// letterKeys are the keys of a flag that may be repeated. A key given twice counts once.
type letterKeys []string

func (k *letterKeys) String() string { return strings.Join(*k, " ") }
func (k *letterKeys) Type() string   { return "key" }

// Set refuses an empty key: LetterQuery.Key selects all keys if it is empty.
func (k *letterKeys) Set(text string) error {
	if text == "" {
		return errors.New("the key is empty, perhaps because a variable is not set. Give a key. " +
			`If it is the empty text, write it as JSON: --key '""'`)
	}
	if !slices.Contains(*k, text) {
		*k = append(*k, text)
	}
	return nil
}

func (o *deadOptions) bind(cmd *cobra.Command) {
	o.consumerFlags.bind(cmd)
	cmd.Flags().Var((*selector)(&o.error), "error", "only those whose error contains this `text`; # is any number")
	cmd.Flags().Var(&o.keys, "key", "a `key`; may be repeated")
}

// queries returns a query for each key.
func (o *deadOptions) queries() (all []rowfeed.LetterQuery) {
	for _, key := range o.keys {
		all = append(all, rowfeed.LetterQuery{ConsumerID: o.id(), Error: o.error, Key: key})
	}
	if all == nil {
		all = append(all, rowfeed.LetterQuery{ConsumerID: o.id(), Error: o.error})
	}
	return all
}

// object names the consumer, or all consumers, in messages.
func (o *deadOptions) object() string {
	if o.consumer == "" {
		return "all consumers"
	}
	return o.consumer
}

func newDead(a *cli.App) *cobra.Command {
	cmd := cli.NewGroup("dead", "List, show, retry and drop dead letters",
		`Dead letters are keys that a consumer has set aside because it could not handle them.
All other keys continue. Later versions of such a key join its dead letter, so that
versions keep their order, until the dead letter is retried or dropped.

They are in the database of the consumer's cursor. For a relay into a mirror that is the
mirror's database: give it with --db.

--error selects dead letters by a text in their error, in which # stands for any number.`,
		`  rowfeed dead list
  rowfeed dead list --group
  rowfeed dead show billing --key 7
  rowfeed dead retry billing --key 7
  rowfeed dead retry billing --error "status 503"
  rowfeed dead drop billing --all --dry-run`)
	cmd.AddCommand(newDeadList(a), newDeadShow(a),
		deadVerb(a, "retry", "Try dead letters again",
			`Asks the consumer to try keys again: within a second, or when it is started. It does
so in its own loop, with the present values of each row. A key that fails again stays
set aside.`, "to be tried again by the consumer", "Their consumers try them again.", (*admin.Admin).RetryDeadLetters),
		deadVerb(a, "drop", "Drop dead letters",
			`Drops dead letters: the versions of their keys so far are never delivered. The next
version of such a key is delivered, so "rowfeed republish" brings the key back.`,
			"given up", "The versions of their keys so far are never delivered.", (*admin.Admin).DropDeadLetters))
	return cmd
}

// deadPage are the flags of a page of dead letters.
type deadPage struct {
	deadOptions
	after string
	limit int
}

func (o *deadPage) bind(cmd *cobra.Command) {
	o.deadOptions.bind(cmd)
	cmd.Flags().Lookup("key").Usage = "only this `key`"
	cmd.Flags().IntVar(&o.limit, "limit", 100, "at most this `number`, 1 to 1000")
	cmd.Flags().StringVar(&o.after, "after", "", "continue after the `end` of the page before")
}

// check refuses flags of which no page can be read.
func (o *deadPage) check(cmd *cobra.Command) error {
	switch {
	case len(o.keys) > 1:
		return cli.WrongUse(cmd, "--key is given more than once; give one key")
	case o.limit < 1 || o.limit > 1000:
		return cli.WrongUse(cmd, "--limit: %d is not from 1 to 1000", o.limit)
	}
	return nil
}

// read returns the page.
func (o *deadPage) read(ctx context.Context, s *cli.Session) (feedtype.LetterPage, error) {
	q := o.queries()[0]
	q.After, q.Limit = o.after, o.limit
	page, err := s.Admin().DeadLetters(ctx, q)
	if err == nil && len(page.Letters) == 0 && len(o.keys) == 0 {
		err = o.known(ctx, s)
	}
	return page, err
}

// more says how to see the letters of the next page.
func (o *deadPage) more(ctx context.Context, a *cli.App, s *cli.Session, page feedtype.LetterPage) error {
	if page.Next == "" {
		return nil
	}
	n, err := s.Admin().CountDeadLetters(ctx, o.queries()[0])
	if err != nil {
		return err
	}
	return a.PrintLine("%d of %s are shown; for the next page, repeat the command with --after %s", len(page.Letters),
		cli.Plural(n, "dead letter"), page.Next)
}

func newDeadList(a *cli.App) *cobra.Command {
	o := &deadPage{}
	group := false
	cmd := &cobra.Command{
		Use:   "list [CONSUMER]",
		Short: "List dead letters",
		Long: `Lists dead letters, for each shard of a consumer the oldest first: the key, the position
of its latest version, how many later versions have joined it, and the last error. The
state is "aside", or "retry" if an operator has asked the consumer to try the key again.

With --group: how many dead letters there are of each error, since when and until when,
the most frequent first. Errors that differ only in numbers are one group; the first 200
characters count.

With --json: {"letters":[{"consumer":"billing","feed":"orders","shard":0,"data_shard":
0,"key":{"id":7},"generation":1,"position":"12","op":"upsert","state":"aside",
"attempts":6,"collapsed":1,"error":"…","first_at":"2026-01-31T12:00:00Z",
"last_at":"…"}],"next":""}. shard is the consumer's; data_shard is the feed's, or null.
next is the --after of the next page, empty at the end. With --group:
[{"consumer":"billing","feed":"orders","error":"status #","letters":12,"first_at":"…",
"last_at":"…"}].`,
		Example: "  rowfeed dead list\n  rowfeed dead list billing --json\n  rowfeed dead list --group",
		Args:    cli.Args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.consumer = args[0]
			}
			switch err := o.check(cmd); {
			case err != nil:
				return err
			case group && o.after != "":
				return cli.WrongUse(cmd, "--group has no pages; give it without --after")
			}
			s, err := a.Connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			if group {
				return o.groups(cmd.Context(), a, s)
			}
			return o.list(cmd.Context(), a, s)
		},
	}
	o.bind(cmd)
	a.AddOutput(cmd, true)
	cmd.Flags().BoolVar(&group, "group", false, "count them by error")
	return cmd
}

const noLetters = "there are no dead letters in this database; a consumer has its dead letters in the database " +
	"of its cursor, see --db"

func (o *deadPage) list(ctx context.Context, a *cli.App, s *cli.Session) error {
	page, err := o.read(ctx, s)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(page)
	case len(page.Letters) == 0:
		return a.PrintLine("%s", o.none())
	}
	var rows []table.Row
	for _, l := range page.Letters {
		rows = append(rows, table.Row{l.Consumer, l.Feed, l.Shard, string(l.Key), l.Op, l.Position, l.State, l.Attempts,
			l.Collapsed, l.FirstAt.Format(time.RFC3339), l.Error})
	}
	if err := a.PrintTable(table.Row{"consumer", "feed", cli.Wide("shard"), "key", cli.Wide("op"),
		cli.Wide("position"), "state", "attempts", cli.Wide("joined"), cli.Wide("since"),
		cli.Text("error")}, rows); err != nil {
		return err
	}
	return o.more(ctx, a, s, page)
}

// none says that no dead letter was found.
func (o *deadPage) none() string {
	if o.consumer+o.feed+o.error+o.after != "" || len(o.keys) > 0 || o.oneShard() {
		return "no dead letter matches the consumer and the filters"
	}
	return noLetters
}

func (o *deadPage) groups(ctx context.Context, a *cli.App, s *cli.Session) error {
	q := o.queries()[0]
	q.Limit = o.limit
	groups, err := s.Admin().GroupDeadLetters(ctx, q)
	if err == nil && len(groups) == 0 {
		err = o.known(ctx, s)
	}
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(append([]feedtype.LetterGroup{}, groups...))
	case len(groups) == 0:
		return a.PrintLine("%s", o.none())
	}
	var rows []table.Row
	for _, g := range groups {
		rows = append(rows, table.Row{g.Consumer, g.Feed, g.Letters, g.FirstAt.Format(time.RFC3339),
			g.LastAt.Format(time.RFC3339), g.Error})
	}
	return a.PrintTable(table.Row{"consumer", "feed", "letters", cli.Wide("since"), "last", cli.Text("error")},
		rows)
}

func newDeadShow(a *cli.App) *cobra.Command {
	o := &deadPage{}
	cmd := &cobra.Command{
		Use:   "show CONSUMER [--key K]",
		Short: "Show dead letters in full",
		Long: `Shows the dead letter of a key with its whole error and the row that a retry delivers:
its present values, or those that the feed keeps. Without --key it shows the page of
dead letters that "dead list" lists. A key is written as entries show it: the value if
it has one column, else the JSON object.

With --json: the object of "dead list --json", with "row" in each letter; null if there
is none, or if the feed is not in this database.`,
		Example: "  rowfeed dead show billing --key 7\n  rowfeed dead show billing --key '{\"ns\":\"a\",\"k\":\"b\"}'",
		Args:    cli.Args(1, 1, "the CONSUMER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.consumer = args[0]
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.show(cmd.Context(), a)
		},
	}
	o.bind(cmd)
	a.AddOutput(cmd, false)
	return cmd
}

// shownLetter is a dead letter and the row that a retry delivers.
type shownLetter struct {
	feedtype.DeadLetter
	Row    *rowfeed.Row `json:"row"`
	reason string       // why there is no row
}

func (o *deadPage) show(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	page, err := o.read(ctx, s)
	if err != nil {
		return err
	}
	if len(page.Letters) == 0 && len(o.keys) > 0 {
		return o.noSuchKey(o.keys[0])
	}
	letters := []shownLetter{}
	for _, l := range page.Letters {
		shown := shownLetter{DeadLetter: l, reason: "the key has no row now"}
		e, err := s.Admin().LetterRow(ctx, l)
		switch {
		case errors.Is(err, rowfeed.UnknownFeed):
			shown.reason = "the feed is not in this database"
		case err != nil:
			shown.reason = a.ErrorText(err)
		case e != nil && e.Op == rowfeed.Upsert:
			shown.Row = &e.Row
		}
		letters = append(letters, shown)
	}
	if a.JSON {
		return a.PrintJSON(struct {
			Letters []shownLetter `json:"letters"`
			Next    string        `json:"next"`
		}{letters, page.Next})
	}
	if len(letters) == 0 {
		return a.PrintLine("%s", o.none())
	}
	for _, l := range letters {
		row := l.reason
		if l.Row != nil {
			row = string(l.Row.AppendJSON(nil))
		}
		if err := a.PrintLine("%s of %s, shard %d: key %s, %s at position %s (generation %d), %s\n  set aside %s, "+
			"last tried or joined %s, %s, %s joined\n  %s\n  row: %s",
			l.Consumer, l.Feed, l.Shard, l.Key, l.Op, l.Position, l.Generation, l.State, l.FirstAt.Format(time.RFC3339),
			l.LastAt.Format(time.RFC3339), cli.Plural(int64(l.Attempts), "attempt"),
			cli.Plural(int64(l.Collapsed), "later version"), strings.ReplaceAll(l.Error, "\n", "\n  "),
			row); err != nil {
			return err
		}
	}
	return o.more(ctx, a, s, page)
}

func (o *deadOptions) noSuchKey(key string) error {
	return &rowfeed.Error{Code: rowfeed.UnknownConsumer, Object: o.id().String(),
		Cause: "there is no dead letter with key " + key,
		Next:  "`rowfeed dead list " + o.consumer + "` lists the existing ones"}
}

// deadChange changes dead letters.
type deadChange func(*admin.Admin, context.Context, rowfeed.LetterQuery, func(int64)) (int64, error)

// deadVerb returns a command that changes dead letters. done says what was done with them, and effect what that means.
func deadVerb(a *cli.App, verb, short, long, done, effect string, change deadChange) *cobra.Command {
	o := &deadOptions{}
	var consent cli.Consent
	all := false
	cmd := &cobra.Command{
		Use:   verb + " [CONSUMER] (--key K… | --error TEXT | --all)",
		Short: short,
		Long: long + `

It says how many dead letters are selected, and asks. Without a terminal it needs --yes,
unless --key names the letters. --dry-run only says how many.`,
		Example: fmt.Sprintf("  rowfeed dead %s billing --key 7\n  rowfeed dead %s billing --feed orders --all\n"+
			"  rowfeed dead %s --error \"status 503\" --yes", verb, verb, verb),
		Args: cli.Args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.consumer = args[0]
			}
			if all == (len(o.keys) > 0 || o.error != "") {
				return cli.WrongUse(cmd, "which keys? Give --key, --error or --all")
			}
			ctx := cmd.Context()
			s, err := a.Connect(ctx)
			if err != nil {
				return err
			}
			defer s.Close()
			selected, err := o.count(ctx, s)
			if err != nil {
				return err
			}
			letters := cli.Plural(selected, "dead letter")
			if consent.DryRun {
				return a.PrintLine("%s: %s selected; nothing was changed", o.object(), letters)
			}
			if selected > 0 && len(o.keys) == 0 {
				if err := a.Confirm(ctx, consent, o.object(), verb+" "+letters, effect); err != nil {
					return err
				}
			}
			return o.change(ctx, a, s, selected, done, change)
		},
	}
	o.bind(cmd)
	consent.Bind(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "every dead letter of the consumer, or of all consumers")
	return cmd
}

// count returns how many dead letters are selected. Each key must have one.
func (o *deadOptions) count(ctx context.Context, s *cli.Session) (total int64, err error) {
	for _, q := range o.queries() {
		n, err := s.Admin().CountDeadLetters(ctx, q)
		if err != nil {
			return 0, err
		}
		if n == 0 && q.Key != "" {
			return 0, o.noSuchKey(q.Key)
		}
		total += n
	}
	if total == 0 {
		return 0, o.known(ctx, s)
	}
	return total, nil
}

func (o *deadOptions) change(ctx context.Context, a *cli.App, s *cli.Session, selected int64, done string,
	change deadChange) error {
	bar := a.NewProgress("dead letters", func() (int64, error) { return selected, nil })
	defer bar.Done()
	var total int64
	for _, q := range o.queries() {
		n, err := change(s.Admin(), ctx, q, func(n int64) { bar.Set(total + n) })
		if err != nil {
			return err
		}
		total += n
	}
	bar.Done()
	return a.PrintLine("%s: %s %s", o.object(), cli.Plural(total, "dead letter"), done)
}
