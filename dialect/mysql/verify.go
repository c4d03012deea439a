package mysql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// found is a trigger in the catalog: on the source table, or with one of the feed's names on another table of
// that database.
type found struct {
	table, name, event, timing, body, definer string

	fault  string // why it must be made again although its body is right
	remake string // why an upgrade makes it again although Verify accepts it
	named  bool   // the statement that made it names its database
}

func (x found) is(tr trigger, t *dialect.Table) bool {
	return x.table == t.Name.Name && slices.Contains(tr.names[:], x.name) &&
		x.event == tr.event && x.timing == "AFTER" && dialect.SameText(x.body, tr.body)
}

// state says which of a feed's objects exist, and which should.
type state struct {
	wanted []trigger
	ours   []found // the feed's triggers, by name or by body
	// keys are the key columns as the source has them now. declared has the columns of rowfeed's tables, by
	// table. A missing table has none.
	keys     []dialect.Column
	declared map[string][]dialect.Column
	// takeover says that a trigger with a remake counts as not right.
	takeover bool
}

// right tells whether a wanted trigger is in place, and under which name.
func (s *state) right(tr trigger, t *dialect.Table) (name string, ok bool) {
	i := slices.IndexFunc(s.ours, func(x found) bool {
		return x.is(tr, t) && x.fault == "" && !(s.takeover && x.remake != "")
	})
	if i < 0 {
		return "", false
	}
	return s.ours[i].name, true
}

// stale returns the feed's triggers that are not right, and second copies of right ones.
func (s *state) stale(t *dialect.Table) []found {
	kept := map[string]bool{}
	for _, tr := range s.wanted {
		if name, ok := s.right(tr, t); ok {
			kept[name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(s.ours), func(x found) bool { return kept[x.name] })
}

func (d database) inspect(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table) (*state, error) {
	s := &state{declared: map[string][]dialect.Column{}}
	var err error
	if s.wanted, err = d.triggers(f, t); err != nil {
		return nil, err
	}
	var names, bodies []string
	for _, tr := range s.wanted {
		names = append(names, tr.names[0], tr.names[1])
		bodies = append(bodies, tr.body)
	}
	if len(bodies) > 0 {
		args := inTable(t.Name)
		args["names"] = list(names)
		all, err := dialect.All(ctx, q, syntax, statement(capture, "triggers"), args,
			func(rows dialect.Rows) (found, error) {
				v, err := dialect.ScanStrings(rows, 6)
				if err != nil {
					return found{}, err
				}
				return found{table: v[0], name: v[1], event: v[2], timing: v[3], body: strings.TrimSpace(v[4]),
					definer: v[5]}, nil
			})
		if err != nil {
			return nil, err
		}
		s.ours = slices.DeleteFunc(all, func(x found) bool {
			return !slices.Contains(names, x.name) &&
				!slices.ContainsFunc(bodies, func(body string) bool { return dialect.SameText(body, x.body) })
		})
		for i, x := range s.ours {
			for _, tr := range s.wanted {
				if dialect.SameText(x.body, tr.body) || !garbled(tr.body) || !slices.Contains(tr.names[:], x.name) {
					continue
				}
				as, err := d.createdAs(ctx, q, "TRIGGER", feedtype.TableName{Schema: t.Name.Schema, Name: x.name})
				if err != nil {
					return nil, err
				}
				if _, body, _ := strings.Cut(as, " FOR EACH ROW"); dialect.SameText(body, tr.body) {
					s.ours[i].body = tr.body
				}
			}
		}
		if err := d.judge(ctx, q, f, t, s); err != nil {
			return nil, err
		}
	}
	for _, key := range f.Key {
		c := t.Column(key.Name)
		if c == nil {
			return nil, fmt.Errorf("table %s has no key column %q any more: drop the feed, or add the column again",
				t.Name, key.Name)
		}
		if c.Kind != key.Kind {
			return nil, fmt.Errorf("key column %q of table %s is %s now and was %s: drop the feed and add it again",
				key.Name, t.Name, c.Type, key.Type)
		}
		now := *c
		now.Stored = key.Stored
		s.keys = append(s.keys, now)
	}
	for _, table := range f.Tables() {
		columns, err := d.columns(ctx, q, table)
		if err != nil {
			return nil, err
		}
		s.declared[table.Name] = columns
	}
	return s, nil
}

// judge finds faults of the feed's triggers other than in their bodies.
func (d database) judge(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table, s *state) error {
	accounts, err := d.definers(ctx, q, f.Name, triggerNeeds(f, t))
	if err != nil {
		return err
	}
	for i := range s.ours {
		x := &s.ours[i]
		if !slices.ContainsFunc(s.wanted, func(tr trigger) bool { return x.is(tr, t) }) {
			continue
		}
		account, err := accounts.account(ctx, x.definer)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("trigger %s on table %s", x.name, t.Name)
		if account.fault != "" {
			x.fault = account.problem(what, x.definer, "writes to the table fail")
			continue
		}
		if !account.told && x.definer != accounts.login {
			x.remake = untold(what, x.definer)
		}
		if x.named, err = d.namesSchema(ctx, q, t.Name.Schema, x.name); err != nil {
			return err
		}
		if x.named {
			x.remake = what + " named its database, so that a dump of it was not safe to load beside it"
		}
	}
	return nil
}

// namesSchema tells whether a trigger was made by a statement that names its database, as older versions of
// rowfeed did. A dump repeats it on MariaDB.
func (d database) namesSchema(ctx context.Context, q dialect.Querier, schema, name string) (bool, error) {
	statement, err := d.createdAs(ctx, q, "TRIGGER", feedtype.TableName{Schema: schema, Name: name})
	if d.Classify(err) == dialect.ClassUndefined { // it was dropped meanwhile
		return false, nil
	}
	head, _, _ := strings.Cut(statement, " FOR EACH ROW")
	return strings.Contains(head, " TRIGGER "+quote(schema)+".") ||
		strings.Contains(head, " ON "+quote(schema)+"."), err
}

// garbled tells whether MySQL's catalog shows a body in another form than it was made with. If a name contains
// a backtick, the catalog lacks one and repeats text before it. The trigger runs as it was made, and SHOW
// CREATE shows it correctly.
func garbled(body string) bool { return strings.Contains(body, "``") }

// createdAs returns the statement that made a trigger or a routine.
func (d database) createdAs(ctx context.Context, q dialect.Querier, kind string,
	name feedtype.TableName) (made string, err error) {
	columns := map[string]int{"TRIGGER": 7}[kind]
	if columns == 0 {
		columns = 6
	}
	_, err = dialect.All(ctx, q, syntax, statement(capture, "made_as"),
		dialect.Args{"kind": dialect.SQL(kind), "name": dialect.SQL(dialect.Qualified(syntax, name))},
		func(rows dialect.Rows) (none struct{}, err error) {
			v, err := dialect.ScanStrings(rows, columns)
			if err == nil {
				made = strings.TrimSpace(v[2])
			}
			return none, err
		})
	return made, err
}

// misfits returns the key columns that one of rowfeed's tables declares in another way than the source does
// now. A key might then not fit, or not be found.
func (s *state) misfits(table string) []dialect.Column {
	return slices.DeleteFunc(slices.Clone(s.keys), func(key dialect.Column) bool {
		return slices.ContainsFunc(s.declared[table], func(c dialect.Column) bool {
			return c.Name == key.Stored && c.Decl == key.Decl
		})
	})
}

// Verify implements [dialect.Core].
func (d database) Verify(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table) ([]string, error) {
	s, err := d.inspect(ctx, q, f, t)
	if err != nil {
		return nil, err
	}
	var problems []string
	stale := s.stale(t)
	unseen := ""
	if len(s.ours) == 0 { // a trigger that this login may not see looks like a missing one
		unseen = ", or this login has not the right TRIGGER on the table, without which it sees none"
	}
	for _, tr := range s.wanted {
		if _, ok := s.right(tr, t); ok {
			continue
		}
		i := slices.IndexFunc(stale, func(x found) bool { return slices.Contains(tr.names[:], x.name) })
		switch {
		case i < 0:
			lost := "are not recorded"
			if f.Fenced() {
				lost = "may give rows positions that the publisher does not give"
			}
			problems = append(problems, fmt.Sprintf("table %s has no trigger %s: its %ss %s%s", t.Name,
				tr.names[0], tr.event, lost, unseen))
		case stale[i].table != t.Name.Name:
			problems = append(problems, fmt.Sprintf("trigger %s is on table %s instead of %s", stale[i].name,
				stale[i].table, t.Name.Name))
		case stale[i].fault != "":
			problems = append(problems, stale[i].fault)
		default:
			problems = append(problems, fmt.Sprintf("trigger %s on table %s is not the one that rowfeed makes",
				stale[i].name, t.Name))
		}
		stale = slices.DeleteFunc(stale, func(x found) bool { return slices.Contains(tr.names[:], x.name) })
	}
	for _, x := range stale {
		problems = append(problems, fmt.Sprintf("trigger %s on table %s is left over", x.name, x.table))
	}
	for _, table := range f.Tables() {
		if len(s.declared[table.Name]) == 0 {
			problems = append(problems, fmt.Sprintf("table %s is missing", table))
			continue
		}
		for _, c := range s.misfits(table.Name) {
			problems = append(problems, fmt.Sprintf("column %s of table %s is not %s, as in table %s", c.Stored, table,
				c.Decl, t.Name))
		}
	}
	if pk := t.PrimaryKey(); f.Primary && f.ULIDs == nil && (pk == nil || !f.KeyedBy(*pk)) &&
		slices.ContainsFunc(t.Unique, f.KeyedBy) {
		problems = append(problems,
			fmt.Sprintf("the feed's key is not the primary key of table %s any more, by which its statements find rows",
				t.Name))
	}
	return append(problems, f.RowProblems(t, rowIndex(f))...), nil
}

// Repair implements [dialect.Core]. A table may have several triggers for one event, so the new trigger is
// made before the stale one is dropped. Between the two steps a change is recorded twice. That only costs a
// position; in an outbox feed the row may be delivered twice.
func (d database) Repair(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	t *dialect.Table) ([]dialect.Step, error) {
	s, err := d.inspect(ctx, q, f, t)
	if err != nil {
		return nil, err
	}
	accounts, err := d.definers(ctx, q, f.Name, triggerNeeds(f, t))
	if err != nil {
		return nil, err
	}
	refused, err := accounts.refusal(ctx)
	if err != nil {
		return nil, err
	}
	s.takeover = refused == nil
	if refused != nil && slices.ContainsFunc(s.wanted, func(tr trigger) bool { _, ok := s.right(tr, t); return !ok }) {
		return nil, refused
	}
	now := *f
	now.Key = s.keys
	steps, err := d.tables(&now)
	if err != nil {
		return nil, err
	}
	for _, table := range f.Tables() {
		if len(s.declared[table.Name]) == 0 {
			continue
		}
		for _, c := range s.misfits(table.Name) {
			steps = append(steps, capture.Step(syntax, f, "declare_key", dialect.Args{
				"table": dialect.SQL(dialect.Qualified(syntax, table)), "column": dialect.SQL(d.keyColumn(c))}))
		}
	}
	steps = append(steps, d.rowColumns(f, t)...)
	if len(s.wanted) > 0 {
		steps = append(steps, d.triggerSession(f, t)...)
	}
	stale := s.stale(t)
	drop := func(x found) {
		steps = append(steps, capture.Step(syntax, f, "drop_stale_trigger", d.triggerName(t.Name.Schema, x.name)))
		stale = slices.DeleteFunc(stale, func(y found) bool { return x.name == y.name })
	}
	taken := func(name string) int { return slices.IndexFunc(stale, func(x found) bool { return x.name == name }) }
	for _, tr := range s.wanted {
		if _, ok := s.right(tr, t); ok {
			continue
		}
		name := tr.names[0]
		if taken(name) >= 0 {
			name = tr.names[1]
			if i := taken(name); i >= 0 {
				drop(stale[i])
			}
		}
		steps = append(steps, d.createTrigger(f, tr, name, t.Name))
	}
	for len(stale) > 0 {
		drop(stale[0])
	}
	return steps, nil
}
