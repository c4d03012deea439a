package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/install"
)

// maxFindings bounds the findings of one rule.
const maxFindings = 100

// keyRule is a condition that no key may meet. It is SQL over the source (t), the positions (p) and the changes (c),
// and is the same for all databases.
type keyRule struct {
	rule, problem string
	fromSource    bool // read the source, else the positions
	where         string
	inRows        string // the condition with capture "column", if it differs
}

// none as inRows means that the rule does not apply to capture "column".
const none = "none"

var keyRules = []keyRule{
	{admin.RuleSequence, "its position is above the sequence", false, "p.feed_sync_id > s.value", ""},
	{admin.RuleSequence, "its row's position is above the sequence, or below 1", true, none,
		"t.feed_sync_id > s.value OR t.feed_sync_id < 1"},
	{admin.RuleRow, "its row has neither a position nor a change waiting", true, "p.feed_sync_id IS NULL", none},
	{admin.RuleVanished, "its row is gone, but the position is not deleted and no change is waiting", false,
		"p.deleted = 0 AND t.row_is_missing", ""},
	{admin.RuleRisen, "its row exists, but the position is deleted and no change is waiting", false,
		"p.deleted = 1 AND NOT (t.row_is_missing)",
		"p.deleted = 1 AND p.hidden = 0 AND NOT (t.row_is_missing) AND t.feed_sync_id IS NOT NULL"},
}

// rules returns the key rules for the capture of a feed.
func rules(feed *dialect.Feed) []keyRule {
	var all []keyRule
	for _, rule := range keyRules {
		if feed.InRows() && rule.inRows != "" {
			rule.where = rule.inRows
		}
		if rule.where != none {
			all = append(all, rule)
		}
	}
	return all
}

// Checker checks and repairs one feed.
type Checker struct {
	*catalog.Feed
	Install *install.Feed
	Wake    func() // makes this process's publisher poll the feed at once
}

// Check is admin.Checker.Check.
func (f *Checker) Check(ctx context.Context) ([]admin.Finding, error) {
	if err := f.Reload(ctx); err != nil {
		return nil, err
	}
	findings := []admin.Finding{}
	for _, check := range []func(context.Context) ([]string, error){
		f.Install.Verifier.Verify, f.foreignTriggers, f.Install.Partitions.VerifyPartitions, f.inexactKeys,
	} {
		problems, err := check(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range problems {
			findings = append(findings, admin.Finding{Rule: admin.RuleTriggers, Problem: p})
		}
	}
	parts, err := f.VerifyParts(ctx)
	if err != nil {
		return nil, err
	}
	if parts != "" {
		findings = append(findings, admin.Finding{Rule: admin.RuleParts, Problem: parts})
	}
	keys, err := f.checkKeys(ctx)
	if err != nil {
		return nil, err
	}
	shards, err := f.checkShards(ctx)
	return append(append(findings, keys...), shards...), err
}

// inexactKeys reports a feed with capture "column" whose key AddFeed refuses now. An older rowfeed has added it.
func (f *Checker) inexactKeys(context.Context) ([]string, error) {
	if err := install.HoldsExactKeys(f.Record.Load()); err != nil {
		return []string{err.Error()}, nil
	}
	return nil, nil
}

// foreignTriggers reports triggers of other tables that write into the feed's tables. Their records waste positions,
// but the feed can still be served.
func (f *Checker) foreignTriggers(ctx context.Context) ([]string, error) {
	r := f.Record.Load()
	table, err := catalog.DescribeSource(ctx, f.Store, f.Store.On(), r)
	if err != nil {
		return nil, err
	}
	found, err := f.Store.Dialect.Strays(ctx, f.Store.On(), r.Feed(f.Store.Names), table)
	return found, f.Fail("look for triggers of other tables", err)
}

// checkKeys finds the keys that break a rule. MariaDB's snapshots are not atomic, so a key counts only if a second
// check finds the same. A key that is really wrong stays wrong until Repair.
func (f *Checker) checkKeys(ctx context.Context) (findings []admin.Finding, err error) {
	kind, err := kindOf(f.Record.Load())
	if err != nil {
		return nil, err
	}
	first, err := kind.check(ctx, f)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	second, err := kind.check(ctx, f)
	if err != nil {
		return nil, err
	}
	for _, finding := range first {
		if slices.ContainsFunc(second, func(again admin.Finding) bool { return sameFinding(finding, again) }) {
			findings = append(findings, finding)
		}
	}
	return findings, nil
}

func sameFinding(x, y admin.Finding) bool {
	return x.Rule == y.Rule && x.Problem == y.Problem && (x.Key == nil && y.Key == nil ||
		x.Key != nil && y.Key != nil && string(x.Key.AppendJSON(nil)) == string(y.Key.AppendJSON(nil)))
}

func (f *Checker) checkOnce(ctx context.Context) ([]admin.Finding, error) {
	var findings []admin.Finding
	err := f.Store.InTx(ctx, dialect.ForCheck, "check "+f.Name, func(tx dialect.Querier) error {
		findings = nil
		shared, err := dialect.QueryAll(ctx, tx, f.sharedPositions(f.DialectFeed())+
			fmt.Sprintf(" LIMIT %d", maxFindings), nil,
			func(rows dialect.Rows) (position int64, err error) { return position, rows.Scan(&position) })
		if err != nil {
			return err
		}
		for _, position := range shared {
			problem := fmt.Sprintf("more than one key has position %d", position)
			findings = append(findings, admin.Finding{Rule: admin.RuleUnique, Problem: problem})
		}
		for _, rule := range rules(f.DialectFeed()) {
			found, err := f.checkRule(ctx, tx, rule)
			if err != nil {
				return err
			}
			findings = append(findings, found...)
		}
		return nil
	})
	return findings, f.Fail("check", err)
}

func (f *Checker) checkRule(ctx context.Context, tx dialect.Querier, rule keyRule) ([]admin.Finding, error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
	side, refs := "p", dialect.StoredRefs(d, feed, "p")
	if rule.fromSource {
		side, refs = "t", dialect.KeyRefs(d, feed, "t")
	}
	b := dialect.NewBuilder(d)
	from := ruleFrom(f.Feed, b, rule, side)
	return f.findKeys(ctx, tx, refs, from, b.Args(), admin.Finding{Rule: rule.rule, Problem: rule.problem})
}

// findKeys makes a finding of each key (refs) that a query finds. From is the query from its FROM on.
func (f *Checker) findKeys(
	ctx context.Context, tx dialect.Querier, refs []string, from string, args []any, finding admin.Finding,
) ([]admin.Finding, error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
	selected, columns := make([]string, len(refs)), make([]feedtype.Column, len(refs))
	for i, c := range feed.Key {
		selected[i], columns[i] = d.Value(c, refs[i]), c.ForReaders()
	}
	query := "SELECT " + strings.Join(selected, ", ") + from + fmt.Sprintf(" LIMIT %d", maxFindings)
	return dialect.QueryAll(ctx, tx, query, args, func(rows dialect.Rows) (admin.Finding, error) {
		raw := make([]any, len(refs))
		dest := make([]any, len(refs))
		for i := range raw {
			dest[i] = &raw[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return admin.Finding{}, err
		}
		key, err := feedtype.NewRow(columns, raw)
		return admin.Finding{Rule: finding.Rule, Key: &key, Problem: finding.Problem}, err
	})
}

// ruleFrom is FROM and WHERE of a rule. A key with a waiting change breaks no rule, except that a position is above the
// sequence.
func ruleFrom(f *catalog.Feed, b *dialect.Builder, rule keyRule, side string) string {
	d, feed := f.Store.Dialect, f.DialectFeed()
	source, positions := dialect.Qualified(d, feed.Source), dialect.Qualified(d, feed.Positions())
	join := dialect.SourceJoin(d, feed, "t", "p")
	var from string
	if rule.fromSource {
		from = " FROM " + source + " t LEFT JOIN " + positions + " p ON " + join
	} else {
		from = " FROM " + positions + " p LEFT JOIN " + source + " t ON " + join
	}
	where := strings.ReplaceAll(rule.where, "t.row_is_missing", dialect.Ref(d, "t", feed.Key[0].Name)+" IS NULL")
	if rule.rule == admin.RuleSequence {
		return from + " JOIN " + f.Store.Table("sequences") + " s ON s.name = " + b.Arg(f.Name) + " WHERE (" + where +
			")"
	}
	waiting := dialect.StoredJoin(d, feed, "c", "p")
	if side == "t" {
		waiting = dialect.SourceJoin(d, feed, "t", "c")
	}
	// The changes have no index on the key, since writers would pay for it. Every database builds an index or a hash of
	// a DISTINCT list. With NOT EXISTS, SQLite and MariaDB read all changes again for each key.
	keys := strings.Join(dialect.StoredRefs(d, feed, ""), ", ")
	return from + " LEFT JOIN (SELECT DISTINCT " + keys + " FROM " + dialect.Qualified(d, feed.Changes()) + ") c ON " +
		waiting +
		" WHERE " + where + " AND " + dialect.Ref(d, "c", feed.Key[0].Stored) + " IS NULL"
}
