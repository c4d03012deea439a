package plans

import (
	"context"
	"database/sql"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// described returns the feed hot as dialects need it.
func (p *plans) described(capture feedtype.Capture) *dialect.Feed {
	p.Helper()
	info, err := p.feed.Info(p.Ctx)
	if err != nil {
		p.Fatal(err)
	}
	table, err := p.Dialect.Describe(p.Ctx, dialect.On(p.Pool), p.feed.Source())
	if err != nil {
		p.Fatal(err)
	}
	schema, err := p.Dialect.CurrentSchema(p.Ctx, dialect.On(p.Pool))
	if err != nil {
		p.Fatal(err)
	}
	key := make([]dialect.Column, len(info.Key))
	for i, c := range info.Key {
		key[i] = *table.Column(c.Name)
		key[i].Stored = c.Name
	}
	return &dialect.Feed{
		Name:    "hot",
		Names:   dialect.Names{Schema: schema, Prefix: "rowfeed_"},
		Source:  table.Name,
		Key:     key,
		Capture: capture,
		Primary: true,
	}
}

// publishing begins a transaction with the settings of a publisher, and returns the statements that are sent in it.
func (p *plans) publishing(feed *dialect.Feed) (*sql.Tx, *[]testdb.TapEvent) {
	p.Helper()
	sent := new([]testdb.TapEvent)
	pool := p.DB.OpenTapped(p.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		*sent = append(*sent, ev)
		return nil
	}})
	p.Cleanup(func() { pool.Close() })
	begin := p.Dialect.Begin(dialect.ForPublish, feed.Names)
	tx, err := pool.BeginTx(p.Ctx, begin.Options)
	if err != nil {
		p.Fatal(err)
	}
	for _, s := range begin.First {
		if _, err := dialect.On(tx).Exec(p.Ctx, s); err != nil {
			p.Fatal(err)
		}
	}
	return tx, sent
}

// walk asserts what it costs to give other shards to two batches of keys: to those of the table of positions or, with
// rows, to those of the feed's table.
func (p *plans) walk(state string, tx *sql.Tx, sent *[]testdb.TapEvent, feed *dialect.Feed, rows bool) {
	p.Helper()
	q := dialect.On(tx)
	for batch, after := 0, []any(nil); batch < 2; batch++ {
		before := p.touched(tx)
		*sent = nil
		keys, err := dialect.WalkKeys(p.Ctx, q, p.Dialect.Syntax, feed, rows, after, p.batch)
		if err != nil {
			p.Fatal(err)
		}
		var places []dialect.Sharded
		for _, k := range keys {
			if k.Position != nil {
				places = append(places,
					dialect.Sharded{Position: *k.Position, Shard: (int(*k.Shard) + 1) % feed.DataShards})
			}
		}
		if len(places) > 0 {
			if n, err := p.Dialect.SetShards(p.Ctx, q, feed, rows, places); err != nil || n != int64(len(places)) {
				p.Fatalf("%d keys of %d were given other shards: %v", n, len(places), err)
			}
		}
		if touched := p.touched(tx) - before; touched > 2*p.bound() {
			p.Errorf("%s, giving other shards: %d rows were touched for a batch of %d", state, touched, len(keys))
		}
		p.explainWalk(state, *sent, batch > 0)
		if len(keys) < p.batch {
			return
		}
		after = keys[len(keys)-1].Key
	}
}
