package admin

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Feed has the operations on one feed. Applications get it from rowfeed.Feed.Admin.
type Feed struct {
	Inspector
	Checker
	Installation
	Grantor
	Publications
}

// Inspector reports the state of a feed. It writes nothing; Unblock may end a session.
type Inspector interface {
	// Status returns the state of the feed, and the transactions that delay it.
	Status(ctx context.Context) (*Status, error)
	// Backlog returns what waits for the feed's publisher: the cheap part of Status, for metrics. It counts changes up
	// to limit; 0 or less means MaxWaiting.
	Backlog(ctx context.Context, limit int) (Backlog, error)
	// Blockers returns the open transactions that may delay changes of the feed, as far as the database shows them.
	// unseen says what it does not show; nil if it shows all.
	Blockers(ctx context.Context) (found []Blocker, unseen *Unseen, err error)
	// Shards returns the shards of a feed with ULIDs, with their holders and waiting transactions. told says which
	// holders the database names: HoldersAll, HoldersWaitedFor or HoldersNone. For other feeds both are empty.
	Shards(ctx context.Context) (shards []ShardStatus, told string, err error)
	// Unblock ends the connection of the transaction that holds a shard of a feed with ULIDs. That transaction is
	// rolled back, and the next one gets the shard. Unblock only ends a session that the database names as the holder,
	// and checks that again just before. If the transaction ends by itself between check and end, a transaction that
	// the connection begins then is lost. If the database names only holders for which others wait, Unblock waits for
	// the shard itself, at most 5 s. It refuses (code Refused) if several shards could be meant, or if it cannot be
	// sure of the holder. The error wraps errors.ErrUnsupported if the database cannot end sessions.
	Unblock(ctx context.Context, req UnblockRequest) (*Unblocked, error)
}

// Checker compares a feed with its table.
type Checker interface {
	// Check reads the whole feed in one snapshot and returns what is wrong, at most 100 findings of each rule. It
	// writes nothing. It compares data shards afterwards, in batches. If it could not, because the number of data
	// shards is being changed, a finding says so.
	Check(ctx context.Context) ([]Finding, error)
	// Repair records changes for the keys that Check finds wrong, so that the publisher corrects them, and returns how
	// many. Keys in a wrong data shard get the right one and are published again in it; readers of the wrong one are
	// not told. With capture "column" it skips rows that other transactions have locked; they are an error with the
	// code Locked after all else is done. While the number of data shards is being changed the error has the code
	// Sharding. For a feed with an outbox it appends records for rows that have neither a record nor a place; their
	// entries come as new ones.
	Repair(ctx context.Context) (int64, error)
}

// Installation is what rowfeed has made in the database for a feed.
type Installation interface {
	// Verify compares the feed's triggers and tables with what they should be. It returns one sentence for each
	// difference, sorted.
	Verify(ctx context.Context) ([]string, error)
	// VerifyParts says why parts of the feed cannot be read, or only slowly; empty if nothing is wrong.
	VerifyParts(ctx context.Context) (problem string, err error)
	// VerifyPartitions returns one sentence for each new partition of which a TRUNCATE is not captured yet. Other
	// writes to its rows are captured.
	VerifyPartitions(ctx context.Context) ([]string, error)
	// Upgrade restores the feed's triggers and tables, without a moment in which a change is not captured, and returns
	// what was wrong. Changes made while triggers were missing are lost to it: Check finds some of them. Keys of
	// rows that came or went with partitions are recorded.
	Upgrade(ctx context.Context) (mended []string, err error)
	// Reshard changes the number of data shards, and returns whether it was another number before. Writers,
	// publishers and readers of the whole feed continue, and keep their cursors. Earlier cursors of parts are refused
	// with the code OtherPart; consumers with several shards go on from the lowest of theirs. Requests for a part are
	// answered with the code Sharding until every key has its shard. If Reshard fails, call it again with the same
	// number. progress may be nil; it is called with the number of keys that this call has read.
	Reshard(ctx context.Context, dataShards int, progress func(keys int64)) (changed bool, err error)
	// PreviewReshard returns the number of rows that Reshard would publish again. They get their first data shard,
	// which a column of the table holds (FeedSpec.ShardColumn). With capture column Reshard sets their feed_sync_id
	// to NULL. The error is Refused if the table or its keys cannot have this number.
	PreviewReshard(ctx context.Context, dataShards int) (again int64, err error)
	// BackFill gives places to the rows of a feed with an outbox that have neither a record nor a place, and returns
	// how many. They get ULIDs below all ULIDs that their shard has given, in batches in key order. Their times are
	// those of the feed's TimeColumn, if that is before the live part of their shard, else the last millisecond before
	// it. While it runs, cursors below the live part are refused with the code Filling. If it fails, call it again.
	// progress may be nil; it is called with the number of rows placed.
	BackFill(ctx context.Context, progress func(rows int64)) (placed int64, err error)
	// AddFence gives a feed with capture "column" a fence (see FeedSpec.Fence). Call Upgrade afterwards, which makes
	// its triggers.
	AddFence(ctx context.Context) error
	// TakeOver lets rowfeed give the positions of a feed with FeedSpec.PublishedElsewhere, above those that its own
	// publisher has given, and returns whether that is a change. Cursors stay valid. With fence it makes a fence
	// first, which refuses that publisher; without, stop it before. If TakeOver fails, call it again.
	TakeOver(ctx context.Context, fence bool) (changed bool, err error)
	// MayMovePositions returns why MovePositions would refuse the feed; nil if it would not.
	MayMovePositions(ctx context.Context) error
	// MovePositions turns capture "column" into capture "trigger", and returns whether that is a change. It moves the
	// positions out of the rows into rowfeed's own table, in batches, and makes triggers. It writes nothing into rows.
	// Cursors stay valid, and readers, writers and publishers continue. Writers may leave feed_sync_id alone once it
	// has returned, and not earlier. If it fails, call it again. progress may be nil; it is called with the number of
	// rows that this call has handled.
	MovePositions(ctx context.Context, progress func(rows int64)) (changed bool, err error)
	// SetRetention changes how long the entries of a feed with an outbox are kept. Publishers follow within a minute.
	SetRetention(ctx context.Context, to feedtype.Retention) error
	// Adoption returns what became of the cursors from before the feed was added.
	Adoption(ctx context.Context) (*Adoption, error)
	// Retention returns how long entries are kept, as this process last read it.
	Retention() feedtype.Retention
	// Bump gives the feed a new generation, and returns it: the database's time in seconds, or one more than before if
	// that is higher. Earlier cursors are refused with the code GenerationChanged, and all consumers start over. A
	// sequence feed does not need it after a restored backup or a failover: the code HistoryLost refuses consumers that
	// have read what was lost. A ULID feed needs it if its database lost commits, and adopts that database by it.
	Bump(ctx context.Context) (generation int64, err error)
	// AdoptDatabase records the database's identity as that of a ULID feed, and returns whether it was another one
	// before. Positions and cursors stay. It is for a database that has moved with all its commits. For a sequence feed
	// it does nothing.
	AdoptDatabase(ctx context.Context) (changed bool, err error)
}

// Adoption is what became of the cursors from before a feed was added.
type Adoption struct {
	// Continues says that the feed continues a dropped one of its name, whose highest position was Head. Earlier
	// cursors from position From on stay valid: readers at lower ones would miss deletes. Restart says why all are
	// refused. It is empty if the feed continues, or if it adopted nothing or no feed of its name was dropped.
	Continues  bool
	Head, From int64
	Restart    string
	// Consumers is the number of consumers that AdoptCursors has of this feed. Others has one text for each other feed
	// that it has rows of, which are left out, with their number.
	Consumers int
	Others    []string
	// Unadopted has one sentence for each consumer whose stored cursor the feed does not go on from, with the command
	// that changes this.
	Unadopted []string
}

// Grantor lets logins of the database use a feed.
type Grantor interface {
	// Granted returns the logins that got rights by Grant, as this process last read them.
	Granted() feedtype.Grants
	// Grant gives logins the rights on rowfeed's own tables and functions that writers and readers of the feed need.
	// The owner of the feed's table has to grant the rights on that table. The rights survive Upgrade, and dropping the
	// feed revokes them. Granting again changes nothing. The owner of rowfeed's objects is refused. If the database has
	// no logins the error wraps errors.ErrUnsupported.
	Grant(ctx context.Context, logins feedtype.Grants) error
	// Revoke revokes these rights. Logins keep what they need for other feeds, and what they own.
	Revoke(ctx context.Context, logins feedtype.Grants) error
	// PrintGrants returns the script that Grant would run, or Revoke with revoke. Run it before other rights are
	// granted.
	PrintGrants(ctx context.Context, logins feedtype.Grants, revoke bool) ([]dialect.Step, error)
}

// Publications is what operators do with the keys of a feed.
type Publications interface {
	// RepublishWhere publishes again every row for which the SQL condition holds (every row if it is empty), in batches
	// of a transaction each. Hidden rows stay hidden. each may be nil; it is called after every batch with the number
	// of rows so far, and ends the work with its error. The condition is the operator's own SQL and runs as it is
	// written.
	RepublishWhere(ctx context.Context, where string, batch int, each func(rows int64) error) (int64, error)
	// CountWhere counts the rows for which the condition holds.
	CountWhere(ctx context.Context, where string) (int64, error)
	// UnknownKeys returns those of the keys that have neither a row nor a position in the feed. A key that no row can
	// have is an error with the code InvalidRequest.
	UnknownKeys(ctx context.Context, keys ...feedtype.Key) ([]feedtype.Key, error)
	// DeleteSQL returns the statements of rowfeed.Feed.Delete for writers in other languages: to be run in one
	// transaction, each with the key's values as parameters. It is empty for a feed with ULIDs.
	DeleteSQL() []string
	// Purge removes, in batches, published deletes that are older than the feed keeps them, or the expired entries of a
	// feed with an outbox, and returns how many. A cursor below them is refused from then on (TombstonesExpired,
	// EntriesExpired). Publishers do this every minute.
	Purge(ctx context.Context) (int, error)
}
