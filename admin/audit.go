package admin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Act is one entry of the audit log: an operator's action on feeds, consumers, leases or tokens. It must not contain
// secrets.
type Act struct {
	ID int64     `json:"id"`
	At time.Time `json:"at"` // on the database's clock
	// Actor is the name of a token, or of a user as user@host.
	Actor string `json:"actor"`
	// Act is the command that does the same, for example "consumer pause".
	Act    string `json:"act"`
	Object string `json:"object"` // the name of the feed, consumer, lease or token
	Detail string `json:"detail"` // options of the action; may be empty
	// Outcome is "begun" while the action runs, then "done", or "refused: " and the error's code. It stays "begun" if
	// the process was killed.
	Outcome string `json:"outcome"`
}

// Values of Act.Outcome.
const (
	actBegun   = "begun"
	actDone    = "done"
	actRefused = "refused: "
)

// maxActText is the maximum length of each text of an act, in bytes.
const maxActText = 1000

// Audited runs do and records it in the audit log. It writes the act before it calls do, so that nothing is done
// without a record, and the outcome afterwards. It sets ID, At and Outcome of the act itself. It returns the error of
// do, or the error of the audit log; if the act cannot be recorded, do is not called.
func (db *Admin) Audited(ctx context.Context, act Act, do func(context.Context) error) error {
	end, err := db.BeginAct(ctx, act)
	if err != nil {
		return err
	}
	err = do(ctx)
	if unrecorded := end(err); err == nil {
		return unrecorded
	}
	return err
}

// BeginAct writes into the audit log that an action is about to begin. The caller calls end once, with the error of the
// action or nil. end also writes if ctx has ended meanwhile.
func (db *Admin) BeginAct(ctx context.Context, act Act) (end func(error) error, err error) {
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	mark := strings.ToLower(rand.Text())
	var id int64
	err = db.store.InTx(ctx, dialect.ForRecord, "record an act", func(tx dialect.Querier) error {
		_, err := db.store.Exec(ctx, tx, statements, "begin_act", dialect.Args{"mark": mark,
			"actor": plainText(act.Actor), "act": plainText(act.Act), "object": plainText(act.Object),
			"detail": plainText(act.Detail), "outcome": actBegun})
		if err != nil {
			return err
		}
		return db.store.One(ctx, tx, statements, "find_act", dialect.Args{"mark": mark}, &id)
	})
	if err != nil {
		return nil, db.store.Fail("audit log", "record "+act.Act, err)
	}
	return func(outcome error) error {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease.PartingTimeout)
		defer cancel()
		err := db.store.InTx(bounded, dialect.ForRecord, "record an act's outcome", func(tx dialect.Querier) error {
			_, err := db.store.Exec(bounded, tx, statements, "end_act",
				dialect.Args{"outcome": outcomeOf(outcome), "id": id})
			return err
		})
		return db.store.FailOwn(bounded, "audit log", "record how "+act.Act+" ended", err)
	}, nil
}

// outcomeOf names an error by its code, since its text may contain secrets.
func outcomeOf(err error) string {
	var known *feedtype.Error
	switch {
	case err == nil:
		return actDone
	case errors.As(err, &known):
		return actRefused + string(known.Code)
	case errors.Is(err, context.Canceled):
		return actRefused + "interrupted"
	}
	return actRefused + string(feedtype.Failed)
}

// plainText returns one line of printable UTF-8, at most maxActText long.
func plainText(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxActText {
		text = strings.ToValidUTF8(text[:maxActText], "") + "…"
	}
	return text
}

// Acts lists acts of the audit log, the newest first: at most limit (0: feedtype.DefaultLimit), and only those with an
// id below before, unless before is 0.
func (db *Admin) Acts(ctx context.Context, before int64, limit int) ([]Act, error) {
	limit, err := feedtype.Request{Limit: limit}.EffectiveLimit()
	if err != nil {
		return nil, err
	}
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	name, args := "acts", dialect.Args{"count": int64(limit)}
	if before > 0 {
		name, args["before"] = "acts_before", before
	}
	all, err := store.All(ctx, db.store, db.store.On(), statements, name, args,
		func(rows dialect.Rows) (a Act, err error) {
			var at int64
			err = rows.Scan(&a.ID, &at, &a.Actor, &a.Act, &a.Object, &a.Detail, &a.Outcome)
			a.At = time.UnixMicro(at).UTC()
			return a, err
		})
	return all, db.store.Fail("audit log", "list it", err)
}

const (
	// AuditRetention is the default of `rowfeed audit purge`: acts are kept for 400 days, a year and some time for
	// questions.
	AuditRetention = 400 * 24 * time.Hour
	// minAuditRetention keeps PurgeActs from removing recent acts.
	minAuditRetention = 24 * time.Hour
	// actsAtOnce is the number of acts that one transaction reads.
	actsAtOnce = 1000
)

// PurgeActs deletes acts that are older than olderThan (at least 24 hours) on the database's clock, and returns how
// many. rowfeed never deletes acts by itself, so that logins of servers and publishers need no right to delete from the
// log.
func (db *Admin) PurgeActs(ctx context.Context, olderThan time.Duration) (total int64, err error) {
	if olderThan < minAuditRetention {
		return 0, &feedtype.Error{
			Code:   feedtype.InvalidRequest,
			Param:  "older-than",
			Object: "audit log",
			Cause:  fmt.Sprintf("older-than: %s is less than 24h, the minimum for which acts are kept", olderThan),
			Next:   "give a duration like 400d",
		}
	}
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return 0, err
	}
	now, err := db.store.Clock(ctx, db.store.On())
	if err != nil {
		return 0, db.store.Fail("audit log", "read the database's time", err)
	}
	before, after := now-olderThan.Microseconds(), int64(0)
	for n := int64(1); n > 0; total += n {
		ids, err := store.All(ctx, db.store, db.store.On(), statements, "act_ids",
			dialect.Args{"after": after, "count": actsAtOnce},
			func(rows dialect.Rows) (id int64, err error) { return id, rows.Scan(&id) })
		if err != nil || len(ids) == 0 {
			return total, db.store.Fail("audit log", "read it", err)
		}
		err = db.store.InTx(ctx, dialect.ForRecord, "purge the audit log", func(tx dialect.Querier) (err error) {
			n, err = db.store.Exec(ctx, tx, statements, "purge_acts",
				dialect.Args{"first": ids[0], "last": ids[len(ids)-1], "before": before})
			return err
		})
		if err != nil {
			return total, db.store.Fail("audit log", "purge it", err)
		}
		after = ids[len(ids)-1]
	}
	return total, nil
}
