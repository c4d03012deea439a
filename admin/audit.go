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
)

// Act is something that an operator has done to feeds, consumers, leases or tokens, as the
// audit log has it. No secret belongs into it.
type Act struct {
	ID int64     `json:"id"`
	At time.Time `json:"at"` // on the database's clock
	// Actor is who: the name of a token, or of a user as user@host.
	Actor string `json:"actor"`
	// Act is what, as the command is called that does it: "consumer pause".
	Act    string `json:"act"`
	Object string `json:"object"` // done to what
	Detail string `json:"detail"` // and how; may be empty
	// Outcome is "done", or "refused: " and the error's code. It is "begun" while it is
	// done, and stays so where whoever did it was killed.
	Outcome string `json:"outcome"`
}

// The outcomes of an act, see Act.Outcome.
const (
	actBegun   = "begun"
	actDone    = "done"
	actRefused = "refused: "
)

// maxActText bounds each text of an act, in bytes.
const maxActText = 1000

// Audited does something in an operator's name, and has it in the audit log: before it is
// done, so that nothing is done unnoticed, and its outcome afterwards. ID, At and Outcome of
// the act are not asked for. The error is that of do, or why nothing was done.
func (db *Admin) Audited(ctx context.Context, act Act, do func(context.Context) error) error {
	end, err := db.BeginAct(ctx, act)
	if err != nil {
		return err
	}
	err = do(ctx)
	if unsaid := end(err); err == nil {
		return unsaid
	}
	return err
}

// BeginAct writes into the audit log that something is about to be done. end is to be called
// with how it ended, once; it also writes where ctx is over.
func (db *Admin) BeginAct(ctx context.Context, act Act) (end func(error) error, err error) {
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	mark := strings.ToLower(rand.Text())
	var id int64
	err = db.store.InTx(ctx, dialect.ForRecord, "record an act", func(tx dialect.Querier) error {
		b := dialect.NewBuilder(db.store.Dialect)
		values := []string{b.Arg(mark), db.store.Dialect.Now(), b.Arg(plainText(act.Actor)), b.Arg(plainText(act.Act)),
			b.Arg(plainText(act.Object)), b.Arg(plainText(act.Detail)), b.Arg(actBegun)}
		if _, err := tx.Exec(ctx, "INSERT INTO "+db.store.Table("audit")+
			" (mark, at, actor, act, object, detail, outcome) VALUES ("+strings.Join(values, ", ")+
			")", b.Args()...); err != nil {
			return err
		}
		// From the newest back, which it is, or nearly: no index is needed.
		b = dialect.NewBuilder(db.store.Dialect)
		return dialect.QueryRow(ctx, tx,
			"SELECT id FROM "+db.store.Table("audit")+" WHERE mark = "+b.Arg(mark)+" ORDER BY id DESC LIMIT 1",
			b.Args(), &id)
	})
	if err != nil {
		return nil, db.store.Fail("audit log", "record "+act.Act, err)
	}
	return func(outcome error) error {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease.PartingTimeout)
		defer cancel()
		err := db.store.InTx(bounded, dialect.ForRecord, "record an act's outcome", func(tx dialect.Querier) error {
			b := dialect.NewBuilder(db.store.Dialect)
			_, err := tx.Exec(bounded,
				"UPDATE "+db.store.Table("audit")+" SET outcome = "+b.Arg(outcomeOf(outcome))+" WHERE id = "+b.Arg(id),
				b.Args()...)
			return err
		})
		return db.store.FailOwn(bounded, "audit log", "record how "+act.Act+" ended", err)
	}, nil
}

// outcomeOf names an error by its code: its text may have what does not belong into a log.
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

// plainText is one line of valid UTF-8, and not too much of it.
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

// Acts lists the audit log, the newest first, at most limit of it (0: DefaultLimit): those
// below the id before, or from the newest on where that is 0.
func (db *Admin) Acts(ctx context.Context, before int64, limit int) ([]Act, error) {
	limit, err := feedtype.Request{Limit: limit}.EffectiveLimit()
	if err != nil {
		return nil, err
	}
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	b := dialect.NewBuilder(db.store.Dialect)
	query := "SELECT id, at, actor, act, object, detail, outcome FROM " + db.store.Table("audit")
	if before > 0 {
		query += " WHERE id < " + b.Arg(before)
	}
	all, err := dialect.QueryAll(ctx, db.store.On(), query+" ORDER BY id DESC LIMIT "+b.Arg(int64(limit)), b.Args(),
		func(rows dialect.Rows) (a Act, err error) {
			var at int64
			err = rows.Scan(&a.ID, &at, &a.Actor, &a.Act, &a.Object, &a.Detail, &a.Outcome)
			a.At = time.UnixMicro(at).UTC()
			return a, err
		})
	return all, db.store.Fail("audit log", "list it", err)
}

const (
	// AuditRetention is how long acts are kept where nobody says otherwise: a year, and time to ask about it.
	AuditRetention = 400 * 24 * time.Hour
	// minAuditRetention lets nobody forget what was just done.
	minAuditRetention = 24 * time.Hour
	// actsAtOnce is the number of acts that one transaction looks at.
	actsAtOnce = 1000
)

// PurgeActs forgets acts of longer ago than this on the database's clock, a day at least, and answers how
// many there were. Nothing forgets them by itself: who runs all the time needs no right to delete from the log.
func (db *Admin) PurgeActs(ctx context.Context, olderThan time.Duration) (total int64, err error) {
	if olderThan < minAuditRetention {
		return 0, &feedtype.Error{Code: feedtype.InvalidRequest, Param: "older-than", Object: "audit log",
			Cause: fmt.Sprintf("older-than: %s: what was done within a day stays", olderThan),
			Next:  "give a duration like 400d"}
	}
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return 0, err
	}
	var now, after int64
	if err := dialect.QueryRow(ctx, db.store.On(), "SELECT "+db.store.Dialect.Now(), nil, &now); err != nil {
		return 0, db.store.Fail("audit log", "ask for the time", err)
	}
	before := now - olderThan.Microseconds()
	for n := int64(1); n > 0; total += n {
		// Ids grow with time, so that nothing is read behind the first that stay.
		b := dialect.NewBuilder(db.store.Dialect)
		ids, err := dialect.QueryAll(ctx, db.store.On(), "SELECT id FROM "+db.store.Table("audit")+" WHERE id > "+
			b.Arg(after)+fmt.Sprintf(" ORDER BY id LIMIT %d", actsAtOnce), b.Args(),
			func(rows dialect.Rows) (id int64, err error) { return id, rows.Scan(&id) })
		if err != nil || len(ids) == 0 {
			return total, db.store.Fail("audit log", "read it", err)
		}
		err = db.store.InTx(ctx, dialect.ForRecord, "purge the audit log", func(tx dialect.Querier) (err error) {
			b := dialect.NewBuilder(db.store.Dialect)
			n, err = tx.Exec(ctx, "DELETE FROM "+db.store.Table("audit")+" WHERE id >= "+b.Arg(ids[0])+
				" AND id <= "+b.Arg(ids[len(ids)-1])+" AND at < "+b.Arg(before), b.Args()...)
			return err
		})
		if err != nil {
			return total, db.store.Fail("audit log", "purge it", err)
		}
		after = ids[len(ids)-1]
	}
	return total, nil
}
