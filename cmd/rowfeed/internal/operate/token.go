package operate

import (
	"context"
	"encoding/csv"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/spf13/cobra"
)

func newToken(a *cli.App) *cobra.Command {
	cmd := cli.NewGroup("token", "Make, list and revoke tokens of HTTP clients",
		`A token identifies the client of a request to "rowfeed serve --auth tokens", and says
what it may do with which feed: read it, publish it (fetch with consistent=true,
republish and unpublish keys), or administer it (pause and move consumers, release
leases, retry and drop dead letters). It is sent as Authorization: Bearer. The
database only stores its SHA-256.`, `  rowfeed token add shop --feed kv --right read
  rowfeed token list
  rowfeed token revoke shop`)
	listCmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens and their rights",
		Long: `Lists all tokens, also expired and revoked ones: name, state (holds, expired or
revoked, on the database's clock; unreadable if a newer rowfeed made it), rights, and
restrictions. The texts of tokens cannot be shown.

With --json: [{"name":"shop","state":"holds","grants":[{"right":"read","feed":"kv"}],
"view":{"where":[{"column":"ns","values":["acme"]}],"mask":["secret"]},
"created_at":"2026-01-31T12:00:00Z","expires_at":null,"revoked_at":null}].`,
		Example: "  rowfeed token list --json",
		Args:    cli.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return listTokens(cmd.Context(), a) },
	}
	a.AddOutput(listCmd, true)
	revoke := &tokenRevokeOptions{}
	cmd.AddCommand(newTokenAdd(a), listCmd, &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a token",
		Long: `Revokes a token. Servers notice it within a few seconds: they answer 401 then, and end
streams that use the token. Running it again changes nothing. The name cannot be used
for another token.`,
		Example: "  rowfeed token revoke shop",
		Args:    cli.Args(1, 1, "the token's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			revoke.name = args[0]
			return revoke.run(cmd.Context(), a)
		},
	})
	return cmd
}

type tokenAddOptions struct {
	name          string
	feeds, rights []string
	expires       cli.Duration
	where, mask   []string
}

func newTokenAdd(a *cli.App) *cobra.Command {
	o := &tokenAddOptions{}
	cmd := &cobra.Command{
		Use:   "add NAME --feed F --right R",
		Short: "Make a token",
		Long: `Makes a token with rights on feeds, and prints its text, and nothing else, on stdout.
The text cannot be shown again. Keep it like a password. Every right is on every feed
that is named; --feed '*' is all feeds, also those added later.

--where restricts the token to rows with one of some values in a column of the feed's
key: --where ns=acme,other (quote a value that contains a comma: 'ns="a,b"'). If there
are several, all of them must hold. Tombstones of other rows are not shown either;
cursors advance past them. --mask leaves columns out of rows and of the feed's
description; columns of the key cannot be left out. A column that is added to the
table later is shown: to hide it, make another token. A feed that loses one of these
columns is not shown at all.

With --json: the token as "token list --json" shows it, and its text as "token".`,
		Example: `  rowfeed token add shop --feed kv --right read
  rowfeed token add ops --feed '*' --right read,publish,administer --expires 90d
  rowfeed token add acme --feed kv --right read --where ns=acme --mask v`,
		Args: cli.Args(1, 1, "the token's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.feeds, "feed", nil, "a `feed` that the rights are on, or '*' for all; several with commas")
	f.StringSliceVar(&o.rights, "right", nil, "a `right`: read, publish or administer; several with commas")
	f.Var(&o.expires, "expires", "how long it is valid, like 90d (default: until it is revoked)")
	f.StringArrayVar(&o.where, "where", nil,
		"show only rows with these values in a column of the key, as `column=value,…`; may be repeated")
	f.StringSliceVar(&o.mask, "mask", nil, "leave these `columns` out")
	a.AddOutput(cmd, false)
	return cmd
}

func (o *tokenAddOptions) spec() (admin.TokenSpec, error) {
	spec := admin.TokenSpec{Name: o.name, Expires: o.expires.Duration, View: feedtype.View{Mask: o.mask}}
	missing := func(param, next string) (admin.TokenSpec, error) {
		return spec, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: param, Object: fmt.Sprintf("token %q", o.name),
			Cause: "--" + param + " is missing, or has no valid value", Next: next}
	}
	switch {
	case len(o.feeds) == 0:
		return missing("feed", "name a feed with --feed, or all of them with --feed '*'")
	case len(o.rights) == 0:
		return missing("right", "give some of --right read,publish,administer")
	case o.expires.Given && o.expires.Duration <= 0:
		return missing("expires", "give a time like 90d, or leave it out")
	}
	for _, feed := range o.feeds {
		for _, right := range o.rights {
			spec.Grants = append(spec.Grants, admin.TokenGrant{Right: admin.Right(right), Feed: feed})
		}
	}
	for _, text := range o.where {
		column, values, ok := strings.Cut(text, "=")
		all, err := csv.NewReader(strings.NewReader(values)).Read()
		if values == "" { // the empty text is a value
			all, err = []string{""}, nil
		}
		if !ok || err != nil {
			return missing("where", "write it as column=value, or column=value,value")
		}
		spec.View.Where = append(spec.View.Where, feedtype.ViewFilter{Column: column, Values: all})
	}
	return spec, nil
}

func (o *tokenAddOptions) run(ctx context.Context, a *cli.App) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	text, token, err := s.Admin().AddToken(ctx, spec)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(struct {
			*admin.Token
			Text string `json:"token"`
		}{token, text})
	}
	fmt.Fprintf(a.Stderr, "token %s: %s%s; it cannot be shown again\n", token.Name, grantsText(token.Grants),
		expiryText(token))
	return a.PrintLine("%s", text)
}

func expiryText(t *admin.Token) string {
	if t.ExpiresAt == nil {
		return ""
	}
	return ", until " + t.ExpiresAt.Format(time.RFC3339)
}

// grantsText returns rights as text: "read, publish of kv; read of orders".
func grantsText(grants []admin.TokenGrant) string {
	var parts []string
	last := ""
	for _, g := range grants { // sorted by feed
		if g.Feed == last {
			parts[len(parts)-1] = strings.TrimSuffix(parts[len(parts)-1], " of "+last) + ", " + string(g.Right) +
				" of " + g.Feed
			continue
		}
		last = g.Feed
		parts = append(parts, string(g.Right)+" of "+g.Feed)
	}
	return strings.Join(parts, "; ")
}

// viewText returns restrictions as text: "ns = acme or other; without secret".
func viewText(v feedtype.View) string {
	var parts []string
	for _, w := range v.Where {
		parts = append(parts, w.Column+" = "+strings.Join(w.Values, " or "))
	}
	if len(v.Mask) > 0 {
		parts = append(parts, "without "+strings.Join(v.Mask, ", "))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}

func listTokens(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := s.Admin().Tokens(ctx)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(append([]*admin.Token{}, all...))
	case len(all) == 0:
		return a.PrintLine("there are no tokens; `rowfeed token add` makes one")
	}
	var rows []table.Row
	for _, t := range all {
		expires := "never"
		if t.ExpiresAt != nil {
			expires = t.ExpiresAt.Format(time.RFC3339)
		}
		rows = append(rows, table.Row{t.Name, t.State, grantsText(t.Grants), viewText(t.View),
			t.CreatedAt.Format(time.RFC3339), expires})
	}
	return a.PrintTable(table.Row{"token", "state", cli.Text("rights"), cli.Text("view"), cli.Wide("made"),
		"expires"}, rows)
}

type tokenRevokeOptions struct{ name string }

func (o *tokenRevokeOptions) run(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ended, err := s.Admin().RevokeToken(ctx, o.name)
	switch {
	case err != nil:
		return err
	case !ended:
		return a.PrintLine("%s: was revoked already, nothing changed", o.name)
	}
	return a.PrintLine("%s: revoked; servers notice it within a few seconds", o.name)
}
