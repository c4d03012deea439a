package watch

import (
	"context"
	_ "embed" // for watch.sql
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

//go:embed watch.sql
var file string

var statements = dialect.NewStatements(file)

// resultKept is how long a poll's result is valid while the commit stamp stays the same. It is bounded because a pool
// may lead to several servers.
const resultKept = 3 * time.Second

// result is what a poll has read, with the commit stamp that was read before it.
type result struct {
	stamp      string
	validUntil time.Time
	watermarks map[Key]Watermark
	shards     map[Key]bool // the shards that were polled
}

// Poller polls the database for all feeds of a DB. It is for a single goroutine.
type Poller struct {
	Store *store.Store
	Feeds Feeds
	last  result
}

// Feeds is what a Poller has to know of feeds.
type Feeds interface {
	// FirstWaiting is a query that answers a row if a change waits for the feed's publisher. It is "" if the feed has
	// no publisher or is not known.
	FirstWaiting(feed string) string
	// ShardsWithRecords tells in which of a feed's shards outbox records wait; without shards it asks for all. It
	// leaves out what it fails to read, since waiting readers are also woken by watermarks.
	ShardsWithRecords(ctx context.Context, feed string, shards []int) []int
	// Elsewhere returns the feeds whose sequences are not rowfeed's own.
	Elsewhere() []*dialect.Feed
}

// Poll polls the database. A database with a commit stamp is asked for the stamp alone, and for watermarks only if the
// stamp has changed. Sleeping publishers then have to look for changes themselves. Other databases are asked for
// watermarks and changes at once.
func (l *Poller) Poll(ctx context.Context, q Question) (a answer, err error) {
	stamp := ""
	if query := l.Store.Dialect.Stamp; query != "" {
		if err := dialect.QueryRow(ctx, l.Store.On(), query, nil, &stamp); err != nil {
			return answer{}, err
		}
		if stamp != "" && stamp == l.last.stamp && time.Now().Before(l.last.validUntil) {
			if !q.Waiting {
				return answer{}, nil
			}
			if l.last.covers(q.Shards) {
				return answer{At: l.last.watermarks}, nil
			}
		}
	}
	if stamp != "" {
		q.asleep = nil
	}
	if a, err = l.Ask(ctx, q); err != nil {
		return answer{}, err
	}
	a.committed = stamp != ""
	l.last = result{stamp: stamp, validUntil: time.Now().Add(resultKept), watermarks: a.At, shards: make(map[Key]bool)}
	for _, shard := range q.Shards {
		l.last.shards[shard] = true
	}
	return a, nil
}

// covers reports whether the poll read the watermarks of the shards.
func (p *result) covers(shards []Key) bool {
	return p.watermarks != nil && !slices.ContainsFunc(shards, func(shard Key) bool { return !p.shards[shard] })
}

// Ask reads in one statement the watermarks of all feeds and of the shards that readers wait for, and which sleeping
// publishers have a change. The statement has no transaction around it. If it showed uncommitted data, woken readers
// would find nothing and wait again. If readers move outbox records, a waiting record of a shard wakes the shard's
// readers as an entry does.
func (l *Poller) Ask(ctx context.Context, q Question) (a answer, err error) {
	const changeRow = -1 // marks a row that says: a change waits
	var parts []dialect.Built
	if q.Waiting {
		a.At = make(map[Key]Watermark)
		parts = append(parts, l.part("sequences", nil))
		if len(q.Shards) > 0 {
			parts = append(parts, l.ofShards(q.Shards))
		}
	}
	for _, feed := range q.asleep {
		if first := l.Feeds.FirstWaiting(feed); first != "" {
			parts = append(parts, l.part("waiting", dialect.Args{"feed": dialect.SQL(l.Store.Dialect.Literal(feed)),
				"waiting": dialect.SQL(strconv.Itoa(changeRow)), "first": dialect.SQL(first)}))
		}
	}
	if len(parts) == 0 {
		return a, nil
	}
	// Waiting records are read before watermarks, so a record that is moved between the two statements is in both
	// results. In the other order it would be in neither.
	filled := make(map[string][]int)
	if q.Waiting {
		for feed, shards := range shardsOf(q.Shards) {
			filled[feed] = l.Feeds.ShardsWithRecords(ctx, feed, shards)
		}
	}
	a.changed = make(map[string]bool)
	b := dialect.NewBuilder(l.Store.Dialect.Syntax)
	query := dialect.Joined(" UNION ALL ", parts)(b)
	_, err = dialect.QueryAll(ctx, l.Store.On(), query, b.Args(),
		func(rows dialect.Rows) (struct{}, error) {
			key, at, err := scanWatermark(rows)
			if at.Generation == changeRow {
				a.changed[key.Feed] = true
			} else {
				a.At[key] = at
			}
			return struct{}{}, err
		})
	if err != nil || !q.Waiting {
		return a, err
	}
	l.addElsewhere(ctx, a.At)
	for feed, shards := range filled {
		for _, shard := range shards {
			key := Key{Feed: feed, OfShard: true, Shard: shard}
			at, _ := Of(a.At, key)
			a.At[key] = Watermark{Generation: at.Generation, Head: at.Head, waiting: true}
		}
	}
	a.At = addDigests(a.At, q.Shards)
	return a, nil
}

func scanWatermark(rows dialect.Rows) (key Key, at Watermark, err error) {
	var shard *int
	var high, low int64
	err = rows.Scan(&key.Feed, &at.Generation, &low, &shard, &high, &at.Term)
	if at.Head = feedtype.Numbered(low); shard != nil {
		key.OfShard, key.Shard = true, *shard
		at.Head = dialect.ULIDState{High: high, Low: low}.Given()
	}
	return key, at, err
}

// addElsewhere adds the watermarks of feeds whose positions another publisher gives, a statement for each. If one
// cannot be read, only that feed has no watermark: its readers are woken, and their page has the error.
func (l *Poller) addElsewhere(ctx context.Context, all map[Key]Watermark) {
	d := l.Store.Dialect.Syntax
	for _, feed := range l.Feeds.Elsewhere() {
		_, _ = dialect.All(ctx, l.Store.On(), d, statements.For(d, feed, "elsewhere"), nil,
			func(rows dialect.Rows) (struct{}, error) {
				key, at, err := scanWatermark(rows)
				all[key] = at
				return struct{}{}, err
			})
	}
}

// shardsOf returns the shards that readers wait for, by feed; nil means all shards of the feed.
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

// maxShardsNamed is the maximum number of shards that a poll names. If readers wait for more, it reads all.
const maxShardsNamed = 300

func (l *Poller) part(name string, args dialect.Args) dialect.Built {
	return l.Store.Statement(statements, name).With(args)
}

// ofShards reads the watermarks of the shards that readers wait for.
func (l *Poller) ofShards(waited []Key) dialect.Built {
	if len(waited) > maxShardsNamed {
		return l.part("shards", nil)
	}
	shards := shardsOf(waited)
	var named []dialect.Built
	for _, feed := range slices.Sorted(maps.Keys(shards)) {
		name, args := "all_of_feed", dialect.Args{"feed": feed}
		if shards[feed] != nil {
			name, args["shards"] = "some_of_feed", dialect.List(shards[feed])
		}
		named = append(named, l.part(name, args))
	}
	return l.part("some_shards", dialect.Args{"named": dialect.Joined(" OR ", named)})
}
