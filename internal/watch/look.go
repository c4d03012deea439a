package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// seenFor is how long what a look has seen is taken for what there is, because nothing seems to
// have been committed since. It is bounded for the sake of pools that lead to several servers.
const seenFor = 3 * time.Second

// seen is what a look has seen, and at which stamp of the database.
type seen struct {
	stamp  string
	until  time.Time
	at     map[Key]Standing
	shards map[Key]bool
}

// Looker is what asks the database. It is for one goroutine at a time.
type Looker struct {
	Store *store.Store
	Feeds Feeds
	seen  seen
}

// Feeds is what a looker has to know of feeds.
type Feeds interface {
	// FirstWaiting is a query with a row where something waits for the feed's publisher; "" where nothing
	// ever does, or nothing is known of the feed.
	FirstWaiting(feed string) string
	// Filled are those of a feed's shards, of all where none are named, in whose outbox records wait. Of what cannot be
	// asked (the feed may be gone by now) nothing is told: who waits has more than this to be woken by.
	Filled(ctx context.Context, feed string, shards []int) []int
}

// Look asks a database that stamps what is committed for its stamp, and for more only where that
// has changed: then whoever sleeps has to ask himself. Others are asked everything at once.
func (l *Looker) Look(ctx context.Context, q Question) (a answer, err error) {
	stamp := ""
	if query := l.Store.Dialect.Stamp(); query != "" {
		if err := dialect.QueryRow(ctx, l.Store.On(), query, nil, &stamp); err != nil {
			return answer{}, err
		}
		if stamp != "" && stamp == l.seen.stamp && time.Now().Before(l.seen.until) {
			if !q.Waiting {
				return answer{}, nil
			}
			if l.seen.covers(q.Shards) {
				return answer{At: l.seen.at}, nil
			}
		}
	}
	if stamp != "" {
		q.asleep = nil
	}
	if a, err = l.Ask(ctx, q); err != nil {
		return answer{}, err
	}
	a.stirred = stamp != ""
	l.seen = seen{stamp: stamp, until: time.Now().Add(seenFor), at: a.At, shards: make(map[Key]bool)}
	for _, shard := range q.Shards {
		l.seen.shards[shard] = true
	}
	return a, nil
}

// covers tells whether the shards were looked at.
func (s *seen) covers(shards []Key) bool {
	return s.at != nil && !slices.ContainsFunc(shards, func(shard Key) bool { return !s.shards[shard] })
}

// Ask reads in one statement how far all feeds are, and those shards for which somebody waits, and
// for which of the publishers asleep something waits. It is a
// statement by itself, without a transaction around it: were it to show something that is
// not committed yet, readers would look in vain, and wait on. Where readers move the
// records of an outbox, one that waits in a shard for whose entries somebody waits is as
// good as an entry.
func (l *Looker) Ask(ctx context.Context, q Question) (a answer, err error) {
	const changed = -1 // in place of a generation
	var parts []string
	b := dialect.NewBuilder(l.Store.Dialect)
	if q.Waiting {
		a.At = make(map[Key]Standing)
		feeds := l.Store.Table("feeds") + " f ON f.name = "
		parts = append(parts,
			"SELECT s.name, f.generation, s.value, NULL, 0 FROM "+l.Store.Table("sequences")+" s JOIN "+feeds+"s.name")
		if len(q.Shards) > 0 {
			parts = append(parts, "SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high FROM "+
				l.Store.Table("shards")+" h JOIN "+feeds+"h.feed"+Among(b, q.Shards))
		}
	}
	for _, feed := range q.asleep {
		if first := l.Feeds.FirstWaiting(feed); first != "" {
			parts = append(parts,
				fmt.Sprintf("SELECT %s, %d, 0, NULL, 0 FROM (%s) w", l.Store.Dialect.Literal(feed), changed, first))
		}
	}
	if len(parts) == 0 {
		return a, nil
	}
	// What waits is asked before how far the shards are: a record that is moved between the two
	// is told of twice. The other way round it would be in neither, and its shard as if it had
	// never been.
	filled := make(map[string][]int)
	if q.Waiting {
		for feed, shards := range shardsOf(q.Shards) {
			filled[feed] = l.Feeds.Filled(ctx, feed, shards)
		}
	}
	a.changed = make(map[string]bool)
	_, err = dialect.QueryAll(ctx, l.Store.On(), strings.Join(parts, " UNION ALL "), b.Args(),
		func(rows dialect.Rows) (struct{}, error) {
			var key Key
			var at Standing
			var shard *int
			var high, low int64
			err := rows.Scan(&key.Feed, &at.Generation, &low, &shard, &high)
			if at.Head = feedtype.Numbered(low); shard != nil {
				key.OfShard, key.Shard = true, *shard
				at.Head = dialect.ULIDState{High: high, Low: low}.Given()
			}
			if at.Generation == changed {
				a.changed[key.Feed] = true
			} else {
				a.At[key] = at
			}
			return struct{}{}, err
		})
	if err != nil || !q.Waiting {
		return a, err
	}
	for feed, shards := range filled {
		for _, shard := range shards {
			key := Key{Feed: feed, OfShard: true, Shard: shard}
			at, _ := Of(a.At, key)
			a.At[key] = Standing{Generation: at.Generation, Head: at.Head, waiting: true}
		}
	}
	a.At = Together(a.At, q.Shards)
	return a, nil
}

// shardsOf are the shards that somebody waits for, by feed; nil where that is all of them.
func shardsOf(waited []Key) map[string][]int {
	shards := make(map[string][]int)
	for _, key := range waited {
		switch has, known := shards[key.Feed]; {
		case key.Every:
			shards[key.Feed] = nil
		case !known || has != nil:
			shards[key.Feed] = append(has, key.Shard)
		}
	}
	return shards
}

// AmongShards is how many shards are looked up one by one; all are read where somebody waits
// for more.
const AmongShards = 300

// Among is the condition that a shard (h) is one of those: there may be millions of others.
func Among(b *dialect.Builder, waited []Key) string {
	if len(waited) > AmongShards {
		return ""
	}
	shards := shardsOf(waited)
	var of []string
	for _, feed := range slices.Sorted(maps.Keys(shards)) {
		one := "h.feed = " + b.Arg(feed)
		if shards[feed] != nil {
			list := make([]string, len(shards[feed]))
			for i, shard := range shards[feed] {
				list[i] = b.Arg(shard)
			}
			one += " AND h.shard IN (" + strings.Join(list, ", ") + ")"
		}
		of = append(of, one)
	}
	return " WHERE " + strings.Join(of, " OR ")
}
