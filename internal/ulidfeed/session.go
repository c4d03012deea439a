package ulidfeed

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// holderWait bounds the query for the session that holds a shard. Its result only completes an error's text.
const holderWait = 3 * time.Second

// Holders returns the shards that transactions have locked or wait for, as far as the database shows them.
func Holders(ctx context.Context, f *catalog.Feed) ([]dialect.Holding, dialect.NamedHolders, error) {
	if f.Store.Dialect.Sessions == nil {
		return nil, dialect.HoldersNone, nil
	}
	return f.Store.Dialect.Sessions.Holders(ctx, f.Store.On(), f.DialectFeed())
}

// holderText describes the session that holds a shard. It is empty if the database does not tell it within holderWait.
func holderText(ctx context.Context, f *catalog.Feed, shard int) string {
	ctx, cancel := context.WithTimeout(ctx, holderWait)
	defer cancel()
	all, _, err := Holders(ctx, f)
	i := slices.IndexFunc(all, func(h dialect.Holding) bool { return h.Shard == shard && h.Holder != nil })
	if err != nil || i < 0 {
		return ""
	}
	return SessionText(*all[i].Holder)
}

// SessionText describes a session, for example
// "session 42 (app@10.0.0.7, billing), in a transaction for 4s, idle in transaction".
func SessionText(s dialect.Session) string {
	text := "session " + s.ID
	if s.ID == "" {
		text = s.Statement
	}
	if user := strings.Trim(s.User+"@"+s.Host, "@"); user != "" {
		text += " (" + user
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
