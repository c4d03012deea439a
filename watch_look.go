package rowfeed

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// standings reads how far all feeds are, and those shards for which somebody waits. It is a
// statement by itself, without a transaction around it: were it to show something that is
// not committed yet, readers would look in vain, and wait on. Where readers move the
// records of an outbox, one that waits in a shard for whose entries somebody waits is as
// good as an entry.
func (db *DB) standings(ctx context.Context, waited []watchKey) (map[watchKey]standing, error) {
	all := make(map[watchKey]standing)
	feeds := db.table("feeds") + " f ON f.name = "
	b := dialect.NewBuilder(db.d)
	query := "SELECT s.name, f.generation, s.value, NULL, 0 FROM " + db.table("sequences") + " s JOIN " + feeds + "s.name"
	if len(waited) > 0 {
		query += " UNION ALL SELECT h.feed, f.generation, h.ulid_low, h.shard, h.ulid_high FROM " + db.table("shards") + " h JOIN " + feeds + "h.feed" + among(b, waited)
	}
	_, err := dialect.QueryAll(ctx, db.on(), query, b.Args(),
		func(rows dialect.Rows) (struct{}, error) {
			var key watchKey
			var at standing
			var shard *int
			var high, low int64
			err := rows.Scan(&key.feed, &at.generation, &low, &shard, &high)
			if at.head = dialect.Numbered(low); shard != nil {
				key.ofShard, key.shard = true, *shard
				at.head = dialect.ULIDState{High: high, Low: low}.Given()
			}
			all[key] = at
			return struct{}{}, err
		})
	if err != nil || db.publishesNothing() {
		return together(all, waited), err
	}
	for feed, shards := range shardsOf(waited) {
		for _, shard := range db.filled(ctx, feed, shards) {
			key := watchKey{feed: feed, ofShard: true, shard: shard}
			at, _ := standingOf(all, key)
			all[key] = standing{generation: at.generation, head: at.head, waiting: true}
		}
	}
	return together(all, waited), nil
}

// shardsOf are the shards that somebody waits for, by feed; nil where that is all of them.
func shardsOf(waited []watchKey) map[string][]int {
	shards := make(map[string][]int)
	for _, key := range waited {
		switch has, known := shards[key.feed]; {
		case key.every:
			shards[key.feed] = nil
		case !known || has != nil:
			shards[key.feed] = append(has, key.shard)
		}
	}
	return shards
}

// amongShards is how many shards are looked up one by one; all are read where somebody waits
// for more.
const amongShards = 300

// among is the condition that a shard (h) is one of those: there may be millions of others.
func among(b *dialect.Builder, waited []watchKey) string {
	if len(waited) > amongShards {
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

// lookedAt is how many shards one statement looks at.
const lookedAt = 100

// filled are those of a feed's shards, of all where none are named, in whose outbox records wait. Of what cannot be asked
// (the feed may be gone by now) nothing is told: who waits has more than this to be woken by.
func (db *DB) filled(ctx context.Context, feed string, shards []int) (filled []int) {
	db.mu.Lock()
	f := db.feeds[feed]
	db.mu.Unlock()
	if f == nil || !f.dialectFeed().Outbox {
		return nil
	}
	if shards == nil {
		waiting, err := db.d.HasRecords(ctx, db.on(), f.dialectFeed())
		if err == nil && waiting {
			filled, _ = f.recordShards(ctx, 0)
		}
		return filled
	}
	for part := range slices.Chunk(shards, lookedAt) {
		waiting, err := db.d.HasRecords(ctx, db.on(), f.dialectFeed(), part...)
		if err == nil && waiting && len(part) > 1 {
			err = f.reading(ctx, "look into the outbox", func(q dialect.Querier) (err error) {
				part, err = dialect.QueryAll(ctx, q, dialect.FirstRecords(db.d, f.dialectFeed(), part...), nil, func(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) })
				return err
			})
		}
		if err == nil && waiting {
			filled = append(filled, part...)
		}
	}
	return filled
}
