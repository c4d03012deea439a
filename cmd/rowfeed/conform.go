package main

import (
	"context"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/protocoltest"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

type conformOptions struct {
	url, feed, token string
	entries          int
}

func newConform(a *cli.App) *cobra.Command {
	o := &conformOptions{}
	cmd := &cobra.Command{
		Use:   "conform URL",
		Short: "Test whether a server follows the protocol; exit 1 if it does not",
		Long: `Tests whether a server, by any vendor, follows the protocol. The command requests one
feed of the server in every way that the protocol has, and checks the responses: pages
of several sizes, cursors, parts, waiting, streams, problems, formats, caches and
compression. It only reads, at most about --entries of the feed at a time. Other clients
may write to the feed meanwhile.

Each check tests a sentence of docs/PROTOCOL.md and has its number. The result of a
sentence with MUST is passed or failed; of one with SHOULD, passed or differs. It is
untried if the feed has nothing to test the sentence with: for example, no entries.

With --json: [{"check":"2.3","level":"MUST","sentence":"…","result":"failed",
"detail":"…"}].`,
		Example: `  rowfeed conform http://127.0.0.1:8080
  rowfeed conform https://feeds.example.com --feed kv --token env:ROWFEED_TOKEN`,
		Args: cli.Args(1, 1, "the server's URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.url = args[0]
			return o.run(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&o.feed, "feed", "", "the feed's `name` (default: the first that the server lists)")
	cmd.Flags().StringVar(&o.token, "token", "", "send the server this `token`, given as env:NAME or file:PATH")
	cmd.Flags().IntVar(&o.entries, "entries", 2000, "approximate maximum of entries to read from the beginning")
	a.AddOutput(cmd, true)
	return cmd
}

func (o *conformOptions) run(ctx context.Context, a *cli.App) error {
	if _, err := cli.ServerURL(o.url); err != nil {
		return err
	}
	token, err := a.SecretToken(o.token)
	if err != nil {
		return err
	}
	results, err := protocoltest.Run(ctx,
		protocoltest.Options{URL: o.url, Feed: o.feed, Token: token, MaxEntries: o.entries})
	if err != nil {
		return &rowfeed.Error{Code: rowfeed.Unavailable, Object: "server " + o.url,
			Cause: "the protocol cannot be tested on it",
			Next:  "give the URL without /_feeds; name the feed with --feed, and give a token with --token", Err: err}
	}
	failed := int64(0)
	for _, r := range results {
		if r.Result == protocoltest.Failed {
			failed++
		}
	}
	// A failed check is a more important error than a failure to print it.
	printed := o.show(a, results)
	if failed == 0 {
		return printed
	}
	return &rowfeed.Error{Code: rowfeed.Failed, Object: "server " + o.url,
		Cause: cli.Plural(failed, "check") + " failed",
		Next:  "find the sentences in docs/PROTOCOL.md by their numbers"}
}

func (o *conformOptions) show(a *cli.App, results []protocoltest.Result) error {
	if a.JSON {
		return a.PrintJSON(results)
	}
	var rows []table.Row
	for _, r := range results {
		said := r.Sentence
		if r.Detail != "" {
			said = fmt.Sprintf("%s\n-> %s", said, r.Detail)
		}
		rows = append(rows, table.Row{r.Check, r.Level, r.Result, said})
	}
	return a.PrintTable(table.Row{"check", "level", "result", cli.Wrapped("sentence")}, rows)
}
