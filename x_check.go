package rowfeed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// The rules of Check.
const (
	ruleTriggers = "triggers"
	ruleUnique   = "positions-unique"
	ruleSequence = "positions-below-sequence"
	ruleRow      = "row-has-position"
	ruleVanished = "position-has-row"
	ruleRisen    = "deleted-has-no-row"
	ruleShard    = "shard-of-key"
	ruleParts    = "index-by-bucket"
	ruleULID     = "ulid-was-given"
	ruleBytes    = "row-has-ulid"
	rulePlace    = "row-has-place"
	maxFindings  = 100
)

// keyRule is a condition that no key may meet, over the source (t), the positions
// (p) and the changes (c), written once for all databases.
type keyRule struct {
	rule, problem string
	fromSource    bool // walk the source; else the positions
	where         string
	inRows        string // the condition where rows hold their positions, if it is another
}

// none as a keyRule's inRows says that the rule is not about such feeds.
const none = "none"

var keyRules = []keyRule{
	{ruleSequence, "its position is above the sequence", false, "p.feed_sync_id > s.value", ""},
	{ruleSequence, "its row's position is above the sequence, or below 1", true, none, "t.feed_sync_id > s.value OR t.feed_sync_id < 1"},
	{ruleRow, "its row has neither a position nor a change waiting", true, "p.feed_sync_id IS NULL", none},
	{ruleVanished, "its row is gone, but the position is not deleted and no change is waiting", false, "p.deleted = 0 AND t.row_is_missing", ""},
	{ruleRisen, "its row exists, but the position is deleted and no change is waiting", false, "p.deleted = 1 AND NOT (t.row_is_missing)",
		"p.deleted = 1 AND p.hidden = 0 AND NOT (t.row_is_missing) AND t.feed_sync_id IS NOT NULL"},
}

// rules are the key rules of a feed, as they are for its capture.
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

// Check reads the whole feed in one snapshot, under load or not, and answers what
// is wrong: positions that are not unique or above the sequence, rows without a
// position and without a change waiting, positions that contradict their rows,
// triggers that are missing. Keys that are in other data shards than theirs are looked
// for behind that, in batches; of a feed that is being divided anew a finding says that
// they were not. At most 100 findings a rule. It writes nothing; see Repair.
func (f *Feed) Check(ctx context.Context) ([]Finding, error) {
	if err := f.catalog.Reload(ctx); err != nil {
		return nil, err
	}
	findings := []Finding{}
	for _, look := range []func(context.Context) ([]string, error){f.Verify, f.strays, f.VerifyPartitions, f.inexactKeys} {
		problems, err := look(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range problems {
			findings = append(findings, Finding{Rule: ruleTriggers, Problem: p})
		}
	}
	parts, err := f.VerifyParts(ctx)
	if err != nil {
		return nil, err
	}
	if parts != "" {
		findings = append(findings, Finding{Rule: ruleParts, Problem: parts})
	}
	keys, err := f.checkKeys(ctx)
	if err != nil {
		return nil, err
	}
	shards, err := f.checkShards(ctx)
	return append(append(findings, keys...), shards...), err
}

// inexactKeys tells of a feed with capture column that an older rowfeed has made of a key that AddFeed refuses now.
func (f *Feed) inexactKeys(context.Context) ([]string, error) {
	if err := holdsExactKeys(f.catalog.Record.Load()); err != nil {
		return []string{err.Error()}, nil
	}
	return nil, nil
}

// strays are triggers elsewhere that write into the feed's tables. What they record costs positions, and is no reason
// not to be ready.
func (f *Feed) strays(ctx context.Context) ([]string, error) {
	r := f.catalog.Record.Load()
	table, err := catalog.DescribeSource(ctx, f.db.store, f.db.store.On(), r)
	if err != nil {
		return nil, err
	}
	found, err := f.db.store.Dialect.Strays(ctx, f.db.store.On(), r.Feed(f.db.store.Names), table)
	return found, f.db.store.Fail(feedtype.FeedObject(f.name), "look for triggers elsewhere", err)
}

// checkKeys finds the keys that break a rule.
func (f *Feed) checkKeys(ctx context.Context) (findings []Finding, err error) {
	first, err := f.mode().check(ctx, f)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	// MariaDB's snapshots are not atomic: a key counts only if a second one shows the
	// same. (Keys that really are wrong stay wrong until Repair.)
	second, err := f.mode().check(ctx, f)
	if err != nil {
		return nil, err
	}
	for _, finding := range first {
		if slices.ContainsFunc(second, finding.same) {
			findings = append(findings, finding)
		}
	}
	return findings, nil
}

func (x Finding) same(y Finding) bool {
	return x.Rule == y.Rule && x.Problem == y.Problem && (x.Key == nil && y.Key == nil ||
		x.Key != nil && y.Key != nil && string(x.Key.AppendJSON(nil)) == string(y.Key.AppendJSON(nil)))
}

func (f *Feed) checkOnce(ctx context.Context) ([]Finding, error) {
	var findings []Finding
	err := f.db.store.InTx(ctx, dialect.ForCheck, "check "+f.name, func(tx dialect.Querier) error {
		findings = nil
		twice, err := dialect.QueryAll(ctx, tx, f.sharedPositions(f.catalog.DialectFeed())+fmt.Sprintf(" LIMIT %d", maxFindings), nil,
			func(rows dialect.Rows) (position int64, err error) { return position, rows.Scan(&position) })
		if err != nil {
			return err
		}
		for _, position := range twice {
			findings = append(findings, Finding{Rule: ruleUnique, Problem: fmt.Sprintf("position %d was given more than once", position)})
		}
		for _, rule := range rules(f.catalog.DialectFeed()) {
			found, err := f.checkRule(ctx, tx, rule)
			if err != nil {
				return err
			}
			findings = append(findings, found...)
		}
		return nil
	})
	return findings, f.db.store.Fail(feedtype.FeedObject(f.name), "check", err)
}

func (f *Feed) checkRule(ctx context.Context, tx dialect.Querier, rule keyRule) ([]Finding, error) {
	d, feed := f.db.store.Dialect, f.catalog.DialectFeed()
	side, refs := "p", dialect.StoredRefs(d, feed, "p")
	if rule.fromSource {
		side, refs = "t", dialect.KeyRefs(d, feed, "t")
	}
	b := dialect.NewBuilder(d)
	from := f.ruleFrom(b, rule, side)
	return f.findKeys(ctx, tx, refs, from, b.Args(), Finding{Rule: rule.rule, Problem: rule.problem})
}

// findKeys makes findings of the keys (refs) that a query finds; from is all of it from its FROM on.
func (f *Feed) findKeys(ctx context.Context, tx dialect.Querier, refs []string, from string, args []any, finding Finding) ([]Finding, error) {
	d, feed := f.db.store.Dialect, f.catalog.DialectFeed()
	selected, columns := make([]string, len(refs)), make([]feedtype.Column, len(refs))
	for i, c := range feed.Key {
		selected[i], columns[i] = d.Value(c, refs[i]), c.ForReaders()
	}
	query := "SELECT " + strings.Join(selected, ", ") + from + fmt.Sprintf(" LIMIT %d", maxFindings)
	return dialect.QueryAll(ctx, tx, query, args, func(rows dialect.Rows) (Finding, error) {
		raw := make([]any, len(refs))
		dest := make([]any, len(refs))
		for i := range raw {
			dest[i] = &raw[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return Finding{}, err
		}
		key, err := feedtype.NewRow(columns, raw)
		return Finding{Rule: finding.Rule, Key: &key, Problem: finding.Problem}, err
	})
}

// ruleFrom is FROM and WHERE of a rule. Waiting changes excuse a key, except for a
// position that should not exist at all.
func (f *Feed) ruleFrom(b *dialect.Builder, rule keyRule, side string) string {
	d, feed := f.db.store.Dialect, f.catalog.DialectFeed()
	source, positions := dialect.Qualified(d, feed.Source), dialect.Qualified(d, feed.Positions())
	join := dialect.SourceJoin(d, feed, "t", "p")
	var from string
	if rule.fromSource {
		from = " FROM " + source + " t LEFT JOIN " + positions + " p ON " + join
	} else {
		from = " FROM " + positions + " p LEFT JOIN " + source + " t ON " + join
	}
	where := strings.ReplaceAll(rule.where, "t.row_is_missing", dialect.Ref(d, "t", feed.Key[0].Name)+" IS NULL")
	if rule.rule == ruleSequence {
		return from + " JOIN " + f.db.store.Table("sequences") + " s ON s.name = " + b.Arg(f.name) + " WHERE (" + where + ")"
	}
	waiting := dialect.StoredJoin(d, feed, "c", "p")
	if side == "t" {
		waiting = dialect.SourceJoin(d, feed, "t", "c")
	}
	// The changes have no index on the key, since writers would pay for it. A distinct
	// list of them is one that every database makes an index or a hash of; NOT EXISTS
	// reads all changes again for each key on SQLite and MariaDB.
	keys := strings.Join(dialect.StoredRefs(d, feed, ""), ", ")
	return from + " LEFT JOIN (SELECT DISTINCT " + keys + " FROM " + dialect.Qualified(d, feed.Changes()) + ") c ON " + waiting +
		" WHERE " + where + " AND " + dialect.Ref(d, "c", feed.Key[0].Stored) + " IS NULL"
}

// countVanished counts keys whose rows are gone although nothing has said so.
func (f *Feed) countVanished(ctx context.Context) (n int64, err error) {
	b := dialect.NewBuilder(f.db.store.Dialect)
	i := slices.IndexFunc(keyRules, func(r keyRule) bool { return r.rule == ruleVanished })
	err = dialect.QueryRow(ctx, f.db.store.On(), "SELECT count(*)"+f.ruleFrom(b, keyRules[i], "p"), b.Args(), &n)
	if errors.Is(err, store.ErrNoRows) {
		err = nil
	}
	return n, err
}
