package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// rebalance creates the cursors of a consumer, or changes their number.
type rebalance struct {
	c        *Consumer
	db       *Consumers
	info     *feedtype.Info
	count    int
	starting bool
	at       map[feedtype.Cursor]feedtype.CursorState // cursor states of the cursors that are times
	aside    bool                                     // isDone has seen dead letters
	ulid     *consumerRow                             // of a ULID feed that had the same name; else nil
}

// newRebalance prepares the distribution of the feed over count shards. It returns an error if the feed has fewer data
// shards.
func newRebalance(c *Consumer, count int, info *feedtype.Info, starting bool) (*rebalance, error) {
	d := &rebalance{c: c, db: c.DB, info: info, count: count, starting: starting}
	if count <= d.dataShards() {
		return d, nil
	}
	return nil, &feedtype.Error{Code: feedtype.InvalidRequest, Param: "shard count",
		Object: consumerObject(c.Name, info.Name),
		Cause:  fmt.Sprintf("%d shards are more than the feed's data shards, which are %d", count, d.dataShards()),
		Next:   "run `rowfeed feed upgrade " + info.Name + " --data-shards 1024`, or use fewer shards"}
}

// arrange creates or changes the cursors of a consumer until it has one for each shard, and gives every dead letter to
// the shard of its key. Usually one statement shows that nothing is left to do.
func arrange(ctx context.Context, c *Consumer, count int, info *feedtype.Info, starting bool) error {
	d, err := newRebalance(c, count, info, starting)
	if err != nil {
		return err
	}
	for {
		done, err := d.isDone(ctx)
		if done || err != nil {
			return err
		}
		err = c.DB.Store.InTx(ctx, dialect.ForRecord, "make a consumer's cursors",
			func(tx dialect.Querier) error { return d.change(ctx, tx) })
		if !errors.Is(err, errOvertaken) {
			return err
		}
	}
}

func (d *rebalance) dataShards() int { return feedtype.MaxParts(d.info.DataShards) }

// ofOtherDataShards reports whether a cursor was given when the feed had another number of data shards. The keys that
// its shard has read are then spread over all shards of now.
func (d *rebalance) ofOtherDataShards(c feedtype.Cursor) bool {
	p, err := c.State()
	return err == nil && p.Part.Of != 0 && p.Part.Of != d.dataShards()
}

// isDone reports whether the cursors are complete. If they are not, it looks up what change needs.
func (d *rebalance) isDone(ctx context.Context) (bool, error) {
	db := d.db
	rows, err := db.CursorsOf(ctx, db.Store.On(), d.c.Name, d.info.Name)
	if err != nil {
		return false, err
	}
	if d.ulid, err = db.consumerRowOf(ctx, db.Store.On(), d.c.Name, d.info.Name); err != nil {
		return false, err
	}
	same, whole, aside := len(rows) == d.count && d.ulid == nil, true, int64(0)
	var values []feedtype.Cursor
	for i, row := range rows {
		same = same && row.Shard == i && row.ShardCount == d.count && !d.ofOtherDataShards(row.Value)
		whole = whole && row.ShardCount == len(rows)
		aside += row.Aside
		values = append(values, row.Value)
	}
	if !whole {
		values = append(values, d.c.Start)
	}
	d.aside = aside > 0
	if same && d.count > 1 && d.aside {
		letters, err := d.letters(ctx, db.Store.On())
		if err != nil {
			return false, err
		}
		same = !slices.ContainsFunc(letters, func(l storedLetter) bool { return l.shard != d.owner(l) })
	}
	if same {
		return true, nil
	}
	d.at = map[feedtype.Cursor]feedtype.CursorState{}
	for _, c := range values {
		if _, is, _ := c.Time(); is {
			if d.at[c], err = d.resolve(ctx, c); err != nil {
				return false, err
			}
		}
	}
	return false, d.compareTerms(ctx, values)
}

// compareTerms makes cursors of different terms comparable. Terms have no order, and only the source can tell whether
// it knows a term, so compareTerms sends each cursor to it. A cursor that the source accepts gets the present head and
// term. A cursor that it refuses gets the last possible head. The source then also refuses every cursor that is made of
// it.
func (d *rebalance) compareTerms(ctx context.Context, cursors []feedtype.Cursor) error {
	states := map[feedtype.Cursor]feedtype.CursorState{}
	terms := map[feedtype.Term]bool{}
	for _, c := range cursors {
		if p, err := c.State(); err == nil && p.Term != 0 {
			states[c], terms[p.Term] = p, true
		}
	}
	if len(terms) < 2 {
		return nil
	}
	for c, p := range states {
		whole := p
		whole.Part = feedtype.CursorPart{}
		page, err := d.c.Source.Fetch(ctx, feedtype.Request{After: whole.Cursor(), Limit: 1})
		now, invalid := page.Cursor.State()
		switch {
		case isRefusal(err):
			p.Head = feedtype.LastPosition
		case err != nil || invalid != nil:
			return cmp.Or(err, invalid)
		default:
			p.Head, p.Term = now.Head, now.Term
		}
		d.at[c] = p
	}
	return nil
}

// resolve asks the source for the cursor state at a time.
func (d *rebalance) resolve(ctx context.Context, at feedtype.Cursor) (feedtype.CursorState, error) {
	page, err := d.c.Source.Fetch(ctx, feedtype.Request{After: at, Limit: 1})
	if err != nil {
		return feedtype.CursorState{}, err
	}
	if len(page.Entries) > 0 {
		position, err := feedtype.ParsePosition(page.Entries[0].Position)
		p, invalid := page.Cursor.State()
		p.Position, p.Mark = position.Before(), feedtype.Position{}
		return p, cmp.Or(err, invalid)
	}
	p, err := page.Cursor.State()
	if p.Start {
		p = feedtype.CursorState{Generation: d.info.Generation}
	}
	return p, err
}

// change writes the new cursors in one transaction, which locks the old ones. A worker of the old shard count then
// finds another shard_count when it stores its cursor, and is rolled back.
func (d *rebalance) change(ctx context.Context, tx dialect.Querier) error {
	if d.ulid != nil {
		return d.fromULIDs(ctx, tx)
	}
	old, err := d.lock(ctx, tx)
	if err != nil {
		return err
	}
	recounting := false
	// A cursor at the beginning does not say which keys its shard has read. Once one shows that the data shards have
	// changed, each can stand for all keys.
	changed := slices.ContainsFunc(old, func(row *CursorRow) bool { return d.ofOtherDataShards(row.Value) })
	next := make([]CursorRow, d.count)
	for i := range next {
		next[i] = CursorRow{Shard: i, ShardCount: d.count, Value: d.c.Start, Generation: d.c.Start.Generation()}
	}
	var before []oldCursor
	for _, row := range old {
		recounting = recounting || row.ShardCount != d.count
		if row.Generation > d.info.Generation {
			return &feedtype.Error{Code: feedtype.Unavailable, Object: consumerObject(d.c.Name, d.info.Name),
				Cause: fmt.Sprintf("its cursor is of generation %d, and the source shows generation %d: it lags, or "+
					"the cursor is not of this feed", row.Generation, d.info.Generation),
				Next: "wait for the source, or run `rowfeed consumer reset " + d.c.Name + " --feed " + d.info.Name +
					"`"}
		}
		if row.Shard < d.count {
			next[row.Shard] = *row
		}
		from, to, err := feedtype.Part(row.Shard, row.ShardCount).Range(d.dataShards())
		if changed || err != nil { // err: now the feed cannot be divided so far
			from, to = 0, d.dataShards()
		}
		before = append(before, oldCursor{from: from, to: to, value: row.Value, paused: row.Paused})
	}
	switch {
	case recounting && !d.starting:
		return (&assignment{c: d.c, shard: -1, feed: d.info.Name, count: d.count}).shardCountChanged(old[0].ShardCount)
	case recounting || changed:
		if next, err = rebalanced(before, d.dataShards(), d.count, d.c.Start, d.at); err != nil {
			return err
		}
		// Receivers refuse lower epochs, whatever the shard count.
		for i := range next {
			for _, row := range old {
				next[i].Epoch = max(next[i].Epoch, row.Epoch)
			}
			if changed { // as after restart: keys belong to other shards, so the work under all current leases ends
				next[i].Epoch++
			}
		}
	}
	aside, err := d.reassign(ctx, tx, old)
	if err != nil {
		return err
	}
	for i := range next {
		next[i].Aside = aside[i]
		if err := d.save(ctx, tx, old, &next[i]); err != nil {
			return err
		}
	}
	args := d.args()
	args["first"] = d.count
	_, err = d.db.exec(ctx, tx, "drop_cursors_from", args)
	return err
}

// restart sets all shards back to the beginning. old is what lock returned. Keys may belong to other shards from then
// on, so every epoch is raised above all former epochs. That ends the work under all current leases: see waitForStale.
func (d *rebalance) restart(ctx context.Context, tx dialect.Querier, old []*CursorRow) error {
	aside, err := d.reassign(ctx, tx, old)
	if err != nil {
		return err
	}
	highest := int64(0)
	for _, row := range old {
		highest = max(highest, row.Epoch)
	}
	for _, row := range old {
		next := *row
		next.Value, next.Generation, next.Epoch = feedtype.Beginning, 0, highest+1
		if row.Shard < len(aside) {
			next.Aside = aside[row.Shard]
		}
		if err := d.save(ctx, tx, old, &next); err != nil {
			return err
		}
	}
	return nil
}

// args name the consumer.
func (d *rebalance) args() dialect.Args {
	return dialect.Args{"consumer": d.c.Name, "feed": d.info.Name}
}

// one selects the cursor of one shard.
func (d *rebalance) one(shard int) dialect.Args {
	id := feedtype.ConsumerID{Consumer: d.c.Name, Feed: d.info.Name, Shard: &shard}
	return dialect.Args{"which": Which(id)}
}

// lock locks all rows of the consumer, in the order that all transactions use: dead letters, then cursors by shard. It
// creates the row of shard 0 if there is none, so that two instances wait for each other there. It returns the cursors
// that existed before.
func (d *rebalance) lock(ctx context.Context, tx dialect.Querier) ([]*CursorRow, error) {
	db := d.db
	if d.aside {
		if _, err := db.exec(ctx, tx, "lock_letters", d.args()); err != nil {
			return nil, err
		}
	}
	row := func(shard int) (int64, error) { return db.exec(ctx, tx, "lock_cursors", d.one(shard)) }
	made := false
	n, err := row(0)
	if err == nil && n == 0 {
		if n, err = d.insert(ctx, tx, &CursorRow{ShardCount: d.count, Value: d.c.Start,
			Generation: d.c.Start.Generation()}); err == nil {
			made = n == 1
			_, err = row(0)
		}
	}
	if err != nil {
		return nil, err
	}
	all, err := db.CursorsOf(ctx, tx, d.c.Name, d.info.Name)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || all[0].Shard != 0 {
		return nil, errOvertaken // the consumer was dropped while this transaction waited for the lock
	}
	for _, r := range all[1:] {
		if _, err := row(r.Shard); err != nil {
			return nil, err
		}
	}
	if all, err = db.CursorsOf(ctx, tx, d.c.Name, d.info.Name); err == nil && made {
		all = slices.DeleteFunc(all, func(r *CursorRow) bool { return r.Shard == 0 })
	}
	return all, err
}

// insert creates a cursor unless it exists.
func (d *rebalance) insert(ctx context.Context, tx dialect.Querier, r *CursorRow) (int64, error) {
	return d.db.exec(ctx, tx, "insert_cursor", d.values(r))
}

// values are what insert and save store.
func (d *rebalance) values(r *CursorRow) dialect.Args {
	return dialect.Args{"consumer": d.c.Name, "feed": d.info.Name, "shard": r.Shard, "shard_count": r.ShardCount,
		"value": string(r.Value), "generation": r.Generation, "epoch": r.Epoch, "paused": number(r.Paused),
		"aside": r.Aside}
}

// save stores a cursor if it differs from the old one.
func (d *rebalance) save(ctx context.Context, tx dialect.Querier, old []*CursorRow, next *CursorRow) error {
	if slices.ContainsFunc(old, func(r *CursorRow) bool { return *r == *next }) {
		return nil
	}
	n, err := d.db.exec(ctx, tx, "save_cursor", d.values(next))
	if err == nil && n == 0 {
		_, err = d.insert(ctx, tx, next)
	}
	return err
}

// fromULIDs creates the cursors of a consumer that read a ULID feed of the same name before. The feed refuses the old
// cursors as cursors of another generation, until the consumer is reset.
func (d *rebalance) fromULIDs(ctx context.Context, tx dialect.Querier) error {
	db, id := d.db, feedtype.ConsumerID{Consumer: d.c.Name, Feed: d.info.Name}
	if n, err := db.LockWhole(ctx, tx, id); err != nil || n == 0 {
		if err == nil {
			err = errOvertaken // another instance has done it
		}
		return err
	}
	rows, err := db.CursorsOf(ctx, tx, d.c.Name, d.info.Name)
	if err != nil {
		return err
	}
	next := CursorRow{ShardCount: d.count, Value: d.c.Start, Generation: d.c.Start.Generation()}
	for i, row := range rows {
		if i == 0 || row.Generation != 0 && (next.Generation == 0 || row.Generation < next.Generation) {
			next.Value, next.Generation = row.Value, row.Generation
		}
		next.Epoch, next.Paused = max(next.Epoch, row.Epoch), next.Paused || row.Paused
	}
	aside, err := d.reassign(ctx, tx, rows)
	if err != nil {
		return err
	}
	for _, name := range []string{"drop_cursors", "drop_consumers"} {
		if _, err := db.exec(ctx, tx, name, dialect.Args{"which": Which(id)}); err != nil {
			return err
		}
	}
	for next.Shard = range d.count {
		next.Aside = aside[next.Shard]
		if _, err := d.insert(ctx, tx, &next); err != nil {
			return err
		}
	}
	return nil
}
