package install

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// refuseHandBack refuses to hand back a feed that was not taken over from another publisher.
func refuseHandBack(r *catalog.FeedRecord) error {
	switch {
	case r.Moved:
		return feedError(feedtype.Refused, r.Name, "drop it without --hand-back",
			"its positions were moved out of your table by --capture trigger, so your former publisher cannot go on "+
				"from them")
	case !r.LeavesPositions():
		return feedError(feedtype.Refused, r.Name, "drop it without --hand-back",
			"its positions are not in a column of your table, so there is nothing to hand back")
	case r.AdoptSequence == "" && r.AdoptCursors == "":
		return feedError(feedtype.Refused, r.Name,
			"drop it without --hand-back, and let the former publisher continue above the highest feed_sync_id",
			"it was added without --adopt-sequence and --adopt-cursors: rowfeed knows no tables to write to")
	}
	return nil
}

// returning writes a feed's positions into the tables from which the feed was adopted.
type returning struct {
	db   *Database
	q    dialect.Querier
	r    *catalog.FeedRecord
	plan *feedtype.DropPlan
}

// run adds to the plan what there is to write, and with write does it. It can be repeated.
func (b *returning) run(ctx context.Context, write bool) error {
	if b.r.Dropped == nil {
		return feedError(feedtype.Refused, b.r.Name,
			"set the value of the former sequence to the highest feed_sync_id by hand",
			"it was dropped by an older version of rowfeed, which did not save where its positions ended")
	}
	if b.r.AdoptSequence != "" {
		if err := b.sequence(ctx, write); err != nil {
			return err
		}
	}
	if b.r.AdoptCursors == "" {
		return nil
	}
	return b.cursors(ctx, write)
}

func (b *returning) sequence(ctx context.Context, write bool) error {
	db, head := b.db, b.r.Dropped.Head
	value, err := formerSequence(ctx, db, b.q, b.r.Name, b.r.AdoptSequence)
	if err != nil {
		return b.notWritable(err)
	}
	if value >= head {
		return nil
	}
	table, name, err := catalog.SequenceRow(b.r.Name, b.r.AdoptSequence)
	if err != nil {
		return err
	}
	described, err := catalog.DescribeTable(ctx, db.Store, b.q, table)
	if err != nil {
		return err
	}
	b.plan.Written = append(b.plan.Written,
		fmt.Sprintf("table %s: value of %q from %d to %d", described.Name, name, value, head))
	if before := b.r.Dropped; before.Continues() && value != before.Former && before.Former < head {
		before.Why = goneOn(before)
	}
	if !write {
		return nil
	}
	version := ""
	if described.Column("version") != nil { // an optimistic lock
		version = ", version = version + 1"
	}
	return db.together(ctx, b.q, func() error {
		n, err := db.Exec(ctx, b.q, statements, "hand_back_sequence", dialect.Args{"value": head, "name": name,
			"table":   dialect.SQL(dialect.Qualified(db.Dialect.Syntax, described.Name)),
			"version": dialect.SQL(version), "was": value})
		if err == nil && n == 0 {
			err = feedError(feedtype.Conflict, b.r.Name, "stop its former publisher, and run the command again",
				"the value of %q of table %s changed while it was handed back", name, described.Name)
		}
		if err != nil {
			return err
		}
		b.r.Dropped.Former = head // the former publisher continues from there, above all positions
		return db.saveOptions(ctx, b.q, b.r)
	})
}

// notWritable gives the next step of a drop to a refusal of one of the team's tables.
func (b *returning) notWritable(err error) error {
	var refused *feedtype.Error
	if errors.As(err, &refused) && refused.Code == feedtype.Refused {
		refused.Next = "give the table what is missing, and run the command again; or drop the feed without --hand-back"
	}
	return err
}

// storedCursor is a row of rowfeed's own cursors.
type storedCursor struct {
	consumer          string
	shard, shardCount int
	value             feedtype.Cursor
	generation        int64
}

func storedCursors(ctx context.Context, db *Database, q dialect.Querier, feed string) ([]storedCursor, error) {
	return store.All(ctx, db.Store, q, statements, "cursors_of_feed", dialect.Args{"feed": feed},
		func(rows dialect.Rows) (c storedCursor, err error) {
			return c, rows.Scan(&c.consumer, &c.shard, &c.shardCount, &c.value, &c.generation)
		})
}

// letters are dead letters of a consumer.
type letters struct {
	n      int
	lowest int64
}

func lettersOf(ctx context.Context, db *Database, q dialect.Querier, feed string) (map[string]letters, error) {
	all := map[string]letters{}
	_, err := store.All(ctx, db.Store, q, statements, "letters_of_feed", dialect.Args{"feed": feed},
		func(rows dialect.Rows) (_ struct{}, err error) {
			var consumer, position string
			if err := rows.Scan(&consumer, &position); err != nil {
				return struct{}{}, err
			}
			at, err := feedtype.ParsePosition(position)
			l := all[consumer]
			if n := at.Number(); l.n == 0 || n < l.lowest {
				l.lowest = n
			}
			l.n++
			all[consumer] = l
			return struct{}{}, err
		})
	return all, err
}

// cursors writes for each consumer the lowest position of its shards, or the one below its lowest dead letter.
func (b *returning) cursors(ctx context.Context, write bool) error {
	stored, err := storedCursors(ctx, b.db, b.q, b.r.Name)
	if err != nil {
		return err
	}
	table, err := formerCursors(ctx, b.db, b.q, b.r, b.r.AdoptCursors)
	if err != nil {
		return b.notWritable(err)
	}
	letters, err := lettersOf(ctx, b.db, b.q, b.r.Name)
	if err != nil {
		return err
	}
	for i, c := range stored {
		if i > 0 && stored[i-1].consumer == c.consumer {
			continue
		}
		position, refused := int64(-1), false
		for _, s := range stored[i:] {
			if s.consumer != c.consumer {
				break
			}
			at, err := s.value.State()
			refused = refused || err != nil || !at.Start && s.generation != b.r.Generation
			if n := at.Position.Number(); position < 0 || n < position {
				position = n
			}
		}
		if refused {
			b.plan.NotWritten = append(b.plan.NotWritten, fmt.Sprintf("consumer %q has a cursor that the feed refuses,"+
				" so its row of table %s is left as it is", c.consumer, table.name))
			continue
		}
		if l := letters[c.consumer]; l.n > 0 {
			position = min(position, l.lowest-1)
			b.plan.NotWritten = append(b.plan.NotWritten, fmt.Sprintf("consumer %q has dead letters (number %d, the "+
				"lowest at position %d): retry or drop them first, or its cursor is handed back at %d, and a former "+
				"reader receives them and what follows again", c.consumer, l.n, l.lowest, position))
		}
		if err := b.cursor(ctx, table, c.consumer, position, write); err != nil {
			return err
		}
	}
	return nil
}

// cursor writes a position into the consumer's rows of the former table, except into rows that are above the position.
func (b *returning) cursor(ctx context.Context, table *formerTable, consumer string, position int64, write bool) error {
	var below, above []string
	exists := false
	for _, former := range table.rows {
		if former.consumer != consumer {
			continue
		}
		exists = true
		if at := strconv.FormatInt(former.position, 10); former.position < position {
			below = append(below, at)
		} else if former.position > position {
			above = append(above, at)
		}
	}
	if !exists {
		b.plan.NotWritten = append(b.plan.NotWritten, fmt.Sprintf("consumer %q has no row in table %s: insert one "+
			"with %s %d if a former reader is to go on for it", consumer, table.name, table.position, position))
	}
	if len(above) > 0 { // a former reader may have continued since an earlier attempt
		b.plan.NotWritten = append(b.plan.NotWritten, fmt.Sprintf("consumer %q is at position %d, and table %s has it "+
			"at %s, which is left as it is; set it by hand if a former reader is to receive what is in between again",
			consumer, position, table.name, strings.Join(above, ", ")))
	}
	if len(below) == 0 {
		return nil
	}
	b.plan.Written = append(b.plan.Written, fmt.Sprintf("table %s: %s of %q from %s to %d", table.name,
		table.position, consumer, strings.Join(below, ", "), position))
	if !write {
		return nil
	}
	statement, args := "hand_back_cursor", table.args(b.db)
	args["value"], args["name"] = position, consumer
	if table.feeds {
		statement, args["feed"] = "hand_back_cursor_of_feed", b.r.Name
	}
	_, err := b.db.Exec(ctx, b.q, statements, statement, args)
	return err
}
