package rowfeed

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// ShardStatus is how a shard of a feed with ULIDs stands.
type ShardStatus struct {
	Shard int `json:"shard"`
	// Head is the greatest ULID that is there, and HeadAt its time; "" and nil where none is.
	Head   string     `json:"head"`
	HeadAt *time.Time `json:"head_at"`
	// Holder is the transaction that has the shard, as far as Status.HoldersTold says; nil
	// where none has.
	Holder *Session `json:"holder"`
	// Waiting are those that want it, who has waited longest first.
	Waiting []Session `json:"waiting"`
}

// Session is a connection with an open transaction, as the database tells of it: what it
// does not tell, or not to this login, is empty or nil.
type Session struct {
	Session     string `json:"session"` // what the database calls the connection
	User        string `json:"user"`
	Host        string `json:"host"`
	Application string `json:"application"`
	// Since is when the transaction began, AgeSeconds how long ago that was.
	Since      *time.Time `json:"since"`
	AgeSeconds *float64   `json:"age_seconds"`
	// State is what the session does, in the database's words, StateSeconds for how long.
	State        string   `json:"state"`
	StateSeconds *float64 `json:"state_seconds"`
	Statement    string   `json:"statement"` // the current or last one
}

// How much Status tells of who has the shards of a feed with ULIDs.
const (
	HoldersAll       = string(dialect.ToldAll)       // who has a shard is named
	HoldersWaitedFor = string(dialect.ToldWaitedFor) // who has a shard that others wait for is named
	HoldersNone      = string(dialect.ToldNothing)   // nobody is: the database or the login's rights do not tell
)

// MaxShardStatus is the greatest number of shards that Status lists. Those that somebody has
// or waits for are always among them.
const MaxShardStatus = 1000

// status lists the shards: who has them, and their heads.
func (blocking) status(ctx context.Context, f *Feed, s *Status) (err error) {
	s.Shards, s.HoldersTold, err = f.Shards(ctx)
	for _, shard := range s.Shards {
		if h := shard.Holder; h != nil {
			s.Blockers = append(s.Blockers, Blocker{h.Session, h.User, h.Host, h.AgeSeconds, h.Statement, fmt.Sprintf("holds shard %d", shard.Shard)})
		}
	}
	return err
}

// Shards are those of a feed with ULIDs, as Status has them: who has each, who waits for it, and
// how much of that the database tells. There are none of other feeds.
func (f *Feed) Shards(ctx context.Context) (shards []ShardStatus, told string, err error) {
	d, feed := f.db.store.Dialect, f.catalog.DialectFeed()
	shards = []ShardStatus{}
	if feed.ULIDs == nil {
		return shards, "", nil
	}
	holdings, by, err := d.Holders(ctx, f.db.store.On(), feed)
	if err != nil && d.Classify(err) != dialect.ClassPermission { // then it tells what it may
		return shards, "", f.db.store.Fail(feedtype.FeedObject(f.name), "look who has its shards", err)
	}
	var now int64
	if err := dialect.QueryRow(ctx, f.db.store.On(), "SELECT "+d.Now(), nil, &now); err != nil {
		return shards, "", f.db.store.Fail(feedtype.FeedObject(f.name), "ask for the time", err)
	}
	heads, err := f.heads(ctx, holdings)
	if err != nil && d.Classify(err) != dialect.ClassUndefined { // a table that is gone is a problem of its own
		return shards, "", f.db.store.Fail(feedtype.FeedObject(f.name), "read the heads of its shards", err)
	}
	for _, head := range heads {
		shard := ShardStatus{Shard: head.shard, Waiting: []Session{}}
		if head.last.Valid {
			at := time.UnixMilli(int64(head.last.Position.High >> 16)).UTC()
			shard.Head, shard.HeadAt = head.last.Position.String(), &at
		}
		h := holdingOf(holdings, head.shard)
		if h.Holder != nil {
			holder := session(*h.Holder, now)
			shard.Holder = &holder
		}
		for _, w := range h.Waiting {
			shard.Waiting = append(shard.Waiting, session(w, now))
		}
		shards = append(shards, shard)
	}
	return shards, string(by), nil
}

// backlog: nothing waits for anybody.
func (blocking) backlog(context.Context, *Feed, int) (Backlog, error) { return Backlog{}, nil }

// session is one as status tells of it, at a time of the database's.
func session(s dialect.Session, now int64) Session {
	told := Session{Session: s.ID, User: s.User, Host: s.Host, Application: s.Application, State: s.State, Statement: s.Statement}
	if s.Age >= 0 {
		since := time.UnixMicro(now - s.Age).UTC()
		told.Since = &since
	}
	told.AgeSeconds, told.StateSeconds = ageSeconds(s.Age), ageSeconds(s.StateAge)
	return told
}

// shardHead is the greatest ULID of a shard.
type shardHead struct {
	shard int
	last  dialect.ScanULID
}

// heads are those of the feed's shards: of all that holdings name, which may be too new to
// be seen, and of the first others.
func (f *Feed) heads(ctx context.Context, holdings []dialect.Holding) ([]shardHead, error) {
	d, feed := f.db.store.Dialect, f.catalog.DialectFeed()
	b := dialect.NewBuilder(d)
	ref := dialect.Ref(d, "g", feed.ULIDs.Position.Name)
	query := "SELECT s.shard, (SELECT " + d.Value(feed.ULIDs.Position, ref) + " FROM " + dialect.Qualified(d, feed.Held()) + " g WHERE " + dialect.Ref(d, "g", feed.ULIDs.Shard.Name) + " = s.shard ORDER BY " + ref + " DESC LIMIT 1)" +
		" FROM " + f.db.store.Table("shards") + " s WHERE s.feed = " + b.Arg(f.name)
	named := make([]string, 0, len(holdings))
	for _, h := range holdings {
		named = append(named, b.Arg(h.Shard))
	}
	if len(named) > 0 { // these first
		query += " ORDER BY CASE WHEN s.shard IN (" + strings.Join(named, ", ") + ") THEN 0 ELSE 1 END, s.shard"
	} else {
		query += " ORDER BY s.shard"
	}
	heads, err := dialect.QueryAll(ctx, f.db.store.On(), query+" LIMIT "+b.Arg(max(MaxShardStatus-len(holdings), len(holdings))), b.Args(), func(rows dialect.Rows) (h shardHead, err error) {
		return h, rows.Scan(&h.shard, &h.last)
	})
	for _, h := range holdings {
		if !slices.ContainsFunc(heads, func(head shardHead) bool { return head.shard == h.Shard }) {
			heads = append(heads, shardHead{shard: h.Shard})
		}
	}
	slices.SortFunc(heads, func(a, b shardHead) int { return a.shard - b.shard })
	return heads, err
}

// holderWait bounds the question who has a shard, for an error's text.
const holderWait = 3 * time.Second

// holderText says who has a shard, where that can be told soon; empty else.
func (f *Feed) holderText(ctx context.Context, shard int) string {
	ctx, cancel := context.WithTimeout(ctx, holderWait)
	defer cancel()
	all, _, err := f.db.store.Dialect.Holders(ctx, f.db.store.On(), f.catalog.DialectFeed())
	i := slices.IndexFunc(all, func(h dialect.Holding) bool { return h.Shard == shard && h.Holder != nil })
	if err != nil || i < 0 {
		return ""
	}
	return sessionText(*all[i].Holder)
}

// sessionText is a session for people: "session 42 (app@10.0.0.7, billing), in a transaction for 4s, idle in transaction".
func sessionText(s dialect.Session) string {
	text := "session " + s.ID
	if s.ID == "" {
		text = s.Statement
	}
	if who := strings.Trim(s.User+"@"+s.Host, "@"); who != "" {
		text += " (" + who
		if s.Application != "" {
			text += ", " + s.Application
		}
		text += ")"
	}
	if s.Age >= 0 {
		text += ", in a transaction for " + (time.Duration(s.Age) * time.Microsecond).Round(time.Millisecond).String()
	}
	if s.State != "" {
		text += ", " + s.State
	}
	return text
}

// UnblockRequest says whose transaction is to be ended.
type UnblockRequest struct {
	// Shard is the one to free. Nil: the only one that somebody waits for, or, where nobody waits, the
	// only one that a transaction has.
	Shard *int
	// Session is who must have it, as Status names it; empty: whoever has it.
	Session string
	// DryRun only looks.
	DryRun bool
}

// Unblocked is what Unblock found and did.
type Unblocked struct {
	Shard   int       `json:"shard"`
	Holder  *Session  `json:"holder"` // nil: no transaction has the shard
	Waiting []Session `json:"waiting"`
	Ended   bool      `json:"ended"` // the holder's connection; its transaction is rolled back
}

// probeWait bounds the wait for a shard that Unblock takes part in, where only those who wait
// are told of.
const probeWait = 5 * time.Second

// Unblock ends the connection of the transaction that has a shard of a feed with ULIDs, so
// that it is rolled back and the next one gets the shard. It ends nobody of whom the database
// does not say so, and looks again right before: in the moment between the two the
// transaction may end by itself, and its connection begin another, which is then lost.
// Where only those holders are told that somebody waits for, Unblock waits itself.
// Several shards that it could be, and a holder that it cannot be sure of, are refused.
// The error wraps errors.ErrUnsupported where sessions cannot be ended.
func (f *Feed) Unblock(ctx context.Context, req UnblockRequest) (*Unblocked, error) {
	feed, object := f.catalog.DialectFeed(), feedtype.FeedObject(f.name)
	if feed.ULIDs == nil {
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: object, Cause: "unblock: writers of it do not wait for each other", Err: errors.ErrUnsupported, Next: "`rowfeed status` names who holds it up"}
	}
	holdings, told, err := f.db.store.Dialect.Holders(ctx, f.db.store.On(), feed)
	if err != nil {
		return nil, f.db.store.Fail(object, "look who has its shards", err)
	}
	if told == dialect.ToldNothing {
		_, err := f.db.store.Dialect.EndHolder(ctx, f.db.store.On(), feed, dialect.Holding{})
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: object, Cause: "unblock: nobody can tell who has a shard", Err: cmp.Or(err, errors.ErrUnsupported), Next: "end the process that has its transaction open"}
	}
	shard, err := f.toUnblock(holdings, told, req.Shard)
	if err != nil {
		return nil, err
	}
	h := holdingOf(holdings, shard)
	if h.Holder == nil {
		var done func()
		if h, done, err = f.probe(ctx, shard); err != nil {
			return nil, err
		}
		defer done()
	}
	return f.endHolder(ctx, h, req)
}

func holdingOf(all []dialect.Holding, shard int) dialect.Holding {
	for _, h := range all {
		if h.Shard == shard {
			return h
		}
	}
	return dialect.Holding{Shard: shard}
}

// toUnblock is the shard that is meant.
func (f *Feed) toUnblock(holdings []dialect.Holding, told dialect.Told, shard *int) (int, error) {
	if shard != nil {
		return *shard, nil
	}
	var waited, held []int
	for _, h := range holdings {
		if len(h.Waiting) > 0 {
			waited = append(waited, h.Shard)
		}
		held = append(held, h.Shard)
	}
	if len(waited) == 0 {
		waited = held
	}
	switch {
	case len(waited) == 1:
		return waited[0], nil
	case len(waited) > 1:
		return 0, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: "unblock: several shards are taken: " + strings.Trim(fmt.Sprint(waited), "[]"), Next: "name one of them (--shard)"}
	case told == dialect.ToldAll:
		return 0, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: "unblock: nobody is seen to have a shard; a transaction that has taken a new one is not seen", Next: "name the shard (--shard) to have it tried"}
	}
	return 0, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: "unblock: nobody waits for a shard, and this database tells who has one only while somebody does", Next: "name the shard (--shard): rowfeed then waits for it itself"}
}

// probe waits for a shard, so that the database tells who has it. The answer is without a holder where
// nobody has it; done ends the wait.
func (f *Feed) probe(ctx context.Context, shard int) (h dialect.Holding, done func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- f.db.store.Once(ctx, dialect.ForRecord, func(_ *sql.Tx, q dialect.Querier) error {
			_, err := f.db.store.Dialect.LockShard(ctx, q, f.catalog.DialectFeed(), shard, dialect.LockBounds{Wait: probeWait})
			return cmp.Or(err, store.ErrNothing) // rolled back: nobody else is to wait for this
		})
	}()
	done = func() { cancel(); <-ended }
	for {
		select {
		case err := <-ended:
			ended <- err
			switch {
			case errors.Is(err, store.ErrNothing):
				return dialect.Holding{Shard: shard}, done, nil
			case f.db.store.Dialect.Classify(err) == dialect.ClassLockTimeout:
				err = &feedtype.Error{Code: feedtype.Refused, Object: fmt.Sprintf("feed %q, shard %d", f.name, shard), Cause: "unblock: a transaction has it, and the database does not say which",
					Next: "`rowfeed status` lists those that it may be; end the right one by the database's own means"}
			default:
				err = f.db.store.Fail(feedtype.FeedObject(f.name), "wait for the shard", err)
			}
			done()
			return h, nil, err
		case <-time.After(200 * time.Millisecond): // more often some databases would not look anew
		}
		all, _, err := f.db.store.Dialect.Holders(ctx, f.db.store.On(), f.catalog.DialectFeed())
		if err != nil {
			done()
			return h, nil, f.db.store.Fail(feedtype.FeedObject(f.name), "look who has its shards", err)
		}
		if h = holdingOf(all, shard); h.Holder != nil {
			return h, done, nil
		}
	}
}

// endHolder ends who has been found.
func (f *Feed) endHolder(ctx context.Context, h dialect.Holding, req UnblockRequest) (*Unblocked, error) {
	object := fmt.Sprintf("feed %q, shard %d", f.name, h.Shard)
	found := &Unblocked{Shard: h.Shard, Waiting: []Session{}}
	var now int64
	if err := dialect.QueryRow(ctx, f.db.store.On(), "SELECT "+f.db.store.Dialect.Now(), nil, &now); err != nil {
		return nil, f.db.store.Fail(object, "ask for the time", err)
	}
	for _, w := range h.Waiting {
		found.Waiting = append(found.Waiting, session(w, now))
	}
	other := &feedtype.Error{Code: feedtype.Conflict, Object: object, Cause: "unblock: session " + req.Session + " does not have it", Next: "look again with `rowfeed status`"}
	switch {
	case h.Holder == nil && req.Session != "":
		return nil, other
	case h.Holder == nil:
		return found, nil
	case h.Holder.ID == "":
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: object, Cause: "unblock: it is a prepared transaction that has it, which no session stands for: " + h.Holder.Statement, Next: "end it with COMMIT PREPARED or ROLLBACK PREPARED"}
	case req.Session != "" && req.Session != h.Holder.ID:
		other.Cause += "; it is " + sessionText(*h.Holder)
		return nil, other
	}
	holder := session(*h.Holder, now)
	if found.Holder = &holder; req.DryRun {
		return found, nil
	}
	ended, err := f.db.store.Dialect.EndHolder(ctx, f.db.store.On(), f.catalog.DialectFeed(), h)
	if err != nil {
		return nil, f.db.store.Fail(object, "end "+sessionText(*h.Holder), err)
	}
	if !ended {
		return nil, &feedtype.Error{Code: feedtype.Conflict, Object: object, Cause: "unblock: " + sessionText(*h.Holder) + " has ended its transaction meanwhile; nothing was done", Next: "look again with `rowfeed status`"}
	}
	found.Ended = true
	return found, nil
}
