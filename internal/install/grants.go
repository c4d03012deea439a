package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// joined is the union of two grants, sorted. minus is g without the logins of other.
func joined(g, other feedtype.Grants) feedtype.Grants {
	join := func(a, b []string) []string {
		all := slices.Concat(a, b)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return feedtype.Grants{Writers: join(g.Writers, other.Writers), Readers: join(g.Readers, other.Readers)}
}

func minus(g, other feedtype.Grants) feedtype.Grants {
	minus := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(login string) bool { return slices.Contains(b, login) })
	}
	return feedtype.Grants{Writers: minus(g.Writers, other.Writers), Readers: minus(g.Readers, other.Readers)}
}

// Grants grants logins of the database the rights that one feed needs, and revokes them.
type Grants struct {
	*catalog.Feed
	DB *Database
}

// Granted returns the logins that Grant has let use the feed, as last read from the record.
func (f *Grants) Granted() feedtype.Grants { return f.Record.Load().Grants }

// Grant lets logins use the feed. It grants rights on rowfeed's tables and functions only: the owner of the feed's
// table grants the rights on that. The rights survive Upgrade, and dropping the feed revokes them. Granting again
// changes nothing. Grant refuses the owner of rowfeed's objects. On databases without logins the error is
// [errors.ErrUnsupported].
func (f *Grants) Grant(ctx context.Context, logins feedtype.Grants) error {
	return f.changeGrants(ctx, "grant", logins, func(q dialect.Querier, r *catalog.FeedRecord,
		others []*catalog.FeedRecord, logins feedtype.Grants) error {
		before := *r
		r.Grants = joined(r.Grants, logins)
		more, err := rightsOf(f.DB, r, logins)
		if err == nil {
			err = f.refuseOwners(ctx, q, more)
		}
		if err != nil {
			return err
		}
		// The record is saved first. If each statement commits, a drop then knows of every right that was granted.
		if err := f.DB.saveOptions(ctx, q, r); err != nil {
			return err
		}
		for _, l := range more {
			if err := f.Store.Dialect.Roles.Grant(ctx, q, l.sql, l.rights); err != nil {
				// These two have no effect if the transaction rolls back.
				_ = revokeUnneeded(ctx, f.DB, q, more, append(others, &before))
				_ = f.DB.saveOptions(ctx, q, &before)
				return f.grantError(l.name, err)
			}
		}
		return nil
	})
}

// Revoke revokes what Grant has granted to logins. A login keeps the rights that it needs for other feeds, and those on
// objects that it owns. Revoking again changes nothing.
func (f *Grants) Revoke(ctx context.Context, logins feedtype.Grants) error {
	return f.changeGrants(ctx, "revoke", logins, func(q dialect.Querier, r *catalog.FeedRecord,
		others []*catalog.FeedRecord, logins feedtype.Grants) error {
		less, err := rightsOf(f.DB, r, logins)
		if err != nil {
			return err
		}
		r.Grants = minus(r.Grants, logins)
		if err := revokeUnneeded(ctx, f.DB, q, less, append(others, r)); err != nil {
			return err
		}
		return f.DB.saveOptions(ctx, q, r)
	})
}

// PrintGrants returns the script that Grant, or Revoke, would run. The script replaces the list of logins in the feed's
// record by one made from the current list, so run it before any other grant of the feed.
func (f *Grants) PrintGrants(ctx context.Context, logins feedtype.Grants, revoke bool) ([]dialect.Step, error) {
	logins, err := f.accounts(ctx, f.Store.On(), logins)
	if err != nil {
		return nil, f.Fail("look up the logins", err)
	}
	r, others, err := recordAndOthers(ctx, f.DB, f.Store.On(), f.Name)
	if err != nil {
		return nil, f.Fail("read its record", err)
	}
	all, err := rightsOf(f.DB, r, logins)
	if err != nil {
		return nil, err
	}
	d := f.Store.Dialect
	note := "save the logins in the feed's record: an upgrade grants their rights again, and a drop revokes them"
	if revoke {
		r.Grants, note = minus(r.Grants, logins), "remove the logins from the feed's record"
		if all, err = withoutNeeded(ctx, f.DB, f.Store.On(), all, append(others, r)); err != nil {
			return nil, f.Fail("determine what the logins need for other feeds", err)
		}
	} else {
		r.Grants = joined(r.Grants, logins)
		if err := f.refuseOwners(ctx, f.Store.On(), all); err != nil {
			return nil, f.Fail("determine what the logins own", err)
		}
	}
	first, last := d.Frame()
	steps := append(first, dialect.Step{Note: note, SQL: r.SaveOptions(f.Store)(dialect.NewScript(d.Syntax))})
	for _, l := range all {
		if revoke {
			steps = append(steps, d.Roles.RevokeSQL(l.sql, l.rights)...)
		} else {
			steps = append(steps, d.Roles.GrantSQL(l.sql, l.rights)...)
		}
	}
	return append(steps, last...), nil
}

// changeGrants calls change under the schema lock. change receives the feed's record, the records of all other feeds,
// and the logins under the names that the database knows them by.
func (f *Grants) changeGrants(ctx context.Context, doing string, logins feedtype.Grants,
	change func(q dialect.Querier, r *catalog.FeedRecord, others []*catalog.FeedRecord,
		logins feedtype.Grants) error) error {
	if err := f.checkLogins(logins); err != nil {
		return err
	}
	err := f.Store.WithSchemaLock(ctx, "feed "+doing+" "+f.Name, func(q dialect.Querier) error {
		logins, err := f.accounts(ctx, q, logins)
		if err != nil {
			return err
		}
		r, others, err := recordAndOthers(ctx, f.DB, q, f.Name)
		if err != nil {
			return err
		}
		if r.State == catalog.StateCreating {
			return feedError(feedtype.Conflict, f.Name, "complete it first: run the same `rowfeed feed add` again",
				"%s: the feed is not complete", doing)
		}
		return change(q, r, others, logins)
	})
	if err != nil {
		return f.Fail(doing, err)
	}
	return f.Reload(ctx)
}

// recordAndOthers reads a feed's record, and the records of all other feeds.
func recordAndOthers(ctx context.Context, db *Database, q dialect.Querier, name string) (r *catalog.FeedRecord,
	others []*catalog.FeedRecord, err error) {
	records, err := catalog.Load(ctx, db.Store, q, "")
	if err != nil {
		return nil, nil, err
	}
	for _, each := range records {
		switch {
		case each.Gone():
		case each.Name == name:
			r = each
		default:
			others = append(others, each)
		}
	}
	if r != nil {
		err = r.Unreadable
	} else {
		err = feedError(feedtype.UnknownFeed, name, "`rowfeed feed list` shows the feeds, `rowfeed feed add` makes one",
			"there is no such feed")
	}
	return r, others, err
}

// checkLogins refuses an empty list, and names that cannot be logins of this database.
func (f *Grants) checkLogins(logins feedtype.Grants) error {
	if logins.IsZero() {
		return feedtype.Invalid("login", "name a writer or a reader")
	}
	if f.Store.Dialect.Roles == nil {
		return &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "this database has no logins: every user that can open it has all rights",
			Err:    errors.ErrUnsupported,
		}
	}
	for param, names := range map[string][]string{"writer": logins.Writers, "reader": logins.Readers} {
		for _, name := range names {
			_, err := f.Store.Dialect.Roles.Login(name)
			var refusal *dialect.Refusal
			switch {
			case errors.As(err, &refusal):
				return &feedtype.Error{
					Code:   feedtype.InvalidRequest,
					Param:  param,
					Object: feedtype.FeedObject(f.Name),
					Cause:  fmt.Sprintf("%s: %q: %s", param, name, refusal.Cause),
					Next:   refusal.Next,
				}
			case err != nil:
				return err
			}
		}
	}
	return nil
}

// accounts returns the logins under the names that the database knows them by, without duplicates.
func (f *Grants) accounts(ctx context.Context, q dialect.Querier, logins feedtype.Grants) (known feedtype.Grants,
	err error) {
	if err := f.checkLogins(logins); err != nil {
		return known, err
	}
	all := func(names []string) (all []string) {
		for _, name := range names {
			if err == nil {
				name, err = f.Store.Dialect.Roles.Account(ctx, q, name)
			}
			all = append(all, name)
		}
		return all
	}
	known = feedtype.Grants{Writers: all(logins.Writers), Readers: all(logins.Readers)}
	return joined(known, feedtype.Grants{}), err
}

// refuseOwners refuses a login that owns an object on which it would get rights: it already has all of them.
func (f *Grants) refuseOwners(ctx context.Context, q dialect.Querier, logins []loginRights) error {
	for _, l := range logins {
		for _, right := range l.rights {
			owns, err := f.Store.Dialect.Roles.Owns(ctx, q, l.sql, right)
			if err != nil {
				return err
			}
			if owns {
				return &feedtype.Error{
					Code:   feedtype.Refused,
					Object: fmt.Sprintf("feed %q, login %q", f.Name, l.name),
					Cause:  fmt.Sprintf("it owns %s, so it has all rights already", right.On.String()),
					Next: "use the login without a grant; or, to limit it to what a writer or reader needs, " +
						"let another role own rowfeed's tables and functions",
				}
			}
		}
	}
	return nil
}

func (f *Grants) grantError(login string, err error) error {
	var refusal *dialect.Refusal
	if errors.As(err, &refusal) {
		return &feedtype.Error{
			Code:   feedtype.Refused,
			Object: fmt.Sprintf("feed %q, login %q", f.Name, login),
			Cause:  refusal.Cause,
			Next:   refusal.Next,
		}
	}
	return err
}

// loginRights are the rights of one login. name is the login, sql its spelling in a statement.
type loginRights struct {
	name, sql string
	rights    []dialect.Right
}

// rightsOf returns the rights that logins need for a feed.
func rightsOf(db *Database, r *catalog.FeedRecord, logins feedtype.Grants) (all []loginRights, err error) {
	if r.Unreadable != nil {
		return nil, r.Unreadable
	}
	byLogin := map[string][]dialect.Right{}
	shared := []dialect.Right{dialect.May("SELECT", db.Names.Table("schema_version")),
		dialect.May("SELECT", db.Names.Table("feeds"))}
	writing, reading := kinds[r.Mode].rights(db.Dialect, r.Feed(db.Names))
	if len(writing) == 0 && len(logins.Writers) > 0 {
		return nil, feedError(feedtype.Refused, r.Name, "grant them what they need on table "+r.Source.String(),
			"its writers need no rights on rowfeed's tables: triggers record what they write")
	}
	for _, name := range logins.Writers {
		byLogin[name] = slices.Concat(shared, writing)
	}
	if flushing := db.Dialect.Flushing; flushing != nil {
		reading = append(slices.Clone(reading), flushing.FlushRights(db.Names)...)
	}
	for _, name := range logins.Readers {
		byLogin[name] = slices.Concat(shared, byLogin[name], reading)
	}
	for _, name := range slices.Sorted(maps.Keys(byLogin)) {
		l := loginRights{name: name}
		if l.sql, err = db.Dialect.Roles.Login(name); err != nil {
			return nil, err
		}
		for _, right := range byLogin[name] {
			if !slices.ContainsFunc(l.rights, right.Equal) {
				l.rights = append(l.rights, right)
			}
		}
		all = append(all, l)
	}
	return all, nil
}

// revokeUnneeded revokes rights, except for those that the given feeds still need.
func revokeUnneeded(ctx context.Context, db *Database, q dialect.Querier, less []loginRights,
	feeds []*catalog.FeedRecord) error {
	less, err := withoutNeeded(ctx, db, q, less, feeds)
	if err != nil {
		return err
	}
	for _, l := range less {
		if err := db.Dialect.Roles.Revoke(ctx, q, l.sql, l.rights); err != nil {
			return err
		}
	}
	return nil
}

// withoutNeeded leaves out rights that the given feeds need, and rights on objects that the login owns.
func withoutNeeded(ctx context.Context, db *Database, q dialect.Querier, less []loginRights,
	feeds []*catalog.FeedRecord) ([]loginRights, error) {
	var needed []loginRights
	for _, r := range feeds {
		all, err := rightsOf(db, r, r.Grants)
		if err != nil {
			return nil, err
		}
		needed = append(needed, all...)
	}
	for i, l := range less {
		less[i].rights = nil
		for _, right := range l.rights {
			isNeeded := func(n loginRights) bool { return n.sql == l.sql && slices.ContainsFunc(n.rights, right.Equal) }
			if slices.ContainsFunc(needed, isNeeded) {
				continue
			}
			owns, err := db.Dialect.Roles.Owns(ctx, q, l.sql, right)
			if err != nil {
				return nil, err
			}
			if !owns {
				less[i].rights = append(less[i].rights, right)
			}
		}
	}
	return less, nil
}

// revokeAll revokes the rights of a feed that is being dropped. On some databases rights remain after the table is
// dropped.
func revokeAll(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord) error {
	if r.Grants.IsZero() {
		return nil
	}
	records, err := catalog.Load(ctx, db.Store, q, "")
	if err != nil {
		return err
	}
	less, err := rightsOf(db, r, r.Grants)
	if err != nil {
		return err
	}
	return revokeUnneeded(ctx, db, q, less, slices.DeleteFunc(records,
		func(other *catalog.FeedRecord) bool { return other.Name == r.Name || other.Gone() }))
}

// grantAgain grants the rights of a feed's logins again, since an upgrade may have recreated objects.
func grantAgain(ctx context.Context, db *Database, q dialect.Querier, r *catalog.FeedRecord) error {
	all, err := rightsOf(db, r, r.Grants)
	if err != nil {
		return err
	}
	for _, l := range all {
		err := db.Dialect.Roles.Grant(ctx, q, l.sql, l.rights)
		var refusal *dialect.Refusal
		if errors.As(err, &refusal) {
			err = &feedtype.Error{
				Code:   feedtype.Refused,
				Object: fmt.Sprintf("feed %q, login %q", r.Name, l.name),
				Cause:  refusal.Cause,
				Next:   refusal.Next + "; or remove the login from the feed with `rowfeed feed revoke`",
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
