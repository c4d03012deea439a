package operate

import (
	"context"
	_ "embed" // for operate.sql
	"fmt"
	"slices"
	"strconv"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/install"
)

// maxFindings bounds the findings of one rule.
const maxFindings = 100

//go:embed operate.sql
var file string

var statements = dialect.NewStatements(file)

// keyRule is a condition that no key may meet.
type keyRule struct {
	rule, problem string
	fromSource    bool   // read the source, else the positions
	statement     string // the rule's FROM and WHERE
}

// rules returns the key rules for the capture of a feed.
func rules(feed *dialect.Feed) []keyRule {
	ofCapture := keyRule{admin.RuleRow, "its row has neither a position nor a change waiting", true,
		"row_without_position"}
	if feed.InRows() {
		ofCapture = keyRule{admin.RuleSequence, "its row's position is above the sequence, or below 1", true,
			"row_outside_sequence"}
	}
	return []keyRule{
		{admin.RuleSequence, "its position is above the sequence", false, "position_above_sequence"},
		ofCapture,
		{admin.RuleVanished, "its row is gone, but the position is not deleted and no change is waiting", false,
			"position_without_row"},
		{admin.RuleRisen, "its row exists, but the position is deleted and no change is waiting", false,
			"deleted_position_with_row"},
	}
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
	if err := install.RefuseMoving(f.Record.Load(), "check"); err != nil {
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
	nulls, err := f.Install.Verifier.NullKeys(ctx)
	if err != nil {
		return nil, f.Fail("look for rows without a key", err)
	}
	if nulls != "" {
		findings = append(findings, admin.Finding{Rule: admin.RuleKey, Problem: nulls + "; " + giveKeys})
	}
	runs, err := f.Install.Verifier.FormerStillRuns(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range runs {
		findings = append(findings, admin.Finding{Rule: admin.RuleSequence, Problem: p})
	}
	keys, err := f.checkKeys(ctx)
	if err != nil {
		return nil, err
	}
	shards, err := f.checkShards(ctx)
	return append(append(findings, keys...), shards...), err
}

const giveKeys = "give these rows keys, or delete them"

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
	copies := f.Store.Dialect.Copies
	if copies == nil {
		return nil, nil
	}
	r := f.Record.Load()
	table, err := catalog.DescribeSource(ctx, f.Store, f.Store.On(), r)
	if err != nil {
		return nil, err
	}
	found, err := copies.Strays(ctx, f.Store.On(), r.Feed(f.Store.Names), table)
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
		shared, err := dialect.All(ctx, tx, f.Store.Dialect.Syntax, f.Statement(statements, "find_shared_positions"),
			dialect.Args{"count": dialect.SQL(strconv.Itoa(maxFindings))},
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
	find := "find_positions"
	if rule.fromSource {
		find = "find_rows"
	}
	return f.findKeys(ctx, tx, find, f.Statement(statements, rule.statement).With(nil),
		admin.Finding{Rule: rule.rule, Problem: rule.problem})
}

// findKeys makes a finding of each key that a rule finds. The statement is "find_positions" or "find_rows".
func (f *Checker) findKeys(
	ctx context.Context, tx dialect.Querier, statement string, rule dialect.Built, finding admin.Finding,
) (findings []admin.Finding, err error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
	columns := make([]feedtype.Column, len(feed.Key))
	for i, c := range feed.Key {
		columns[i] = c.ForReaders()
	}
	err = dialect.EachKey(ctx, tx, d.Syntax, feed, statements.For(d.Syntax, feed, statement),
		dialect.Args{"rule": rule, "count": dialect.SQL(strconv.Itoa(maxFindings))}, 0,
		func(_ []string, raw []any) error {
			key, err := feedtype.NewRow(columns, raw)
			findings = append(findings, admin.Finding{Rule: finding.Rule, Key: &key, Problem: finding.Problem})
			return err
		})
	return findings, err
}
