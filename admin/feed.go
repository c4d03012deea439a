package admin

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Feed is what operators do with one feed. Applications get it from rowfeed.Feed.Admin.
type Feed struct {
	Inspector
	Checker
	Installation
	Grantor
	Publications
}

// Inspector tells how a feed stands. It writes nothing.
type Inspector interface {
	// Status tells how the feed stands, and who holds it up.
	Status(ctx context.Context) (*Status, error)
	// Backlog tells what waits for the feed's publisher: the part of Status that costs little, for metrics. Changes are
	// counted up to limit; 0 means MaxWaiting.
	Backlog(ctx context.Context, limit int) (Backlog, error)
	// Blockers are the open transactions that may hold back changes of the feed, as far as the database tells; unseen says
	// what it does not tell, and is nil if it tells everything.
	Blockers(ctx context.Context) (found []Blocker, unseen *Unseen, err error)
	// Shards are those of a feed with ULIDs: who holds each, who waits for it, and how much of that the database tells
	// (HoldersAll, …). There are none of other feeds.
	Shards(ctx context.Context) (shards []ShardStatus, told string, err error)
	// Unblock ends the connection of the transaction that holds a shard of a feed with ULIDs. That transaction is rolled
	// back, and the next one gets the shard. Unblock ends no session of which the database does not say that it holds the
	// shard, and looks again right before. If the transaction ends by itself between the two, a transaction that its
	// connection begins then is lost. On a database that names only holders for which others wait, Unblock waits itself.
	// It refuses if several shards could be meant, and if it is not sure of the holder. The error wraps
	// errors.ErrUnsupported if the database cannot end sessions.
	Unblock(ctx context.Context, req UnblockRequest) (*Unblocked, error)
}

// Checker compares a feed with its table.
type Checker interface {
	// Check reads the whole feed in one snapshot and answers what is wrong, at most 100 findings of each rule. It writes
	// nothing. Data shards are compared afterwards, in batches; a finding says so if they were not, since the feed is being
	// divided anew.
	Check(ctx context.Context) ([]Finding, error)
	// Repair records changes for the keys that Check finds wrong, so that the publisher mends them, and answers how many.
	// Keys in a wrong data shard get the right one and are published again in it; readers of the wrong one are not told.
	// Rows with capture "column" that other transactions hold are passed over; when all else is done they are an error with
	// the code Locked. A feed that is being divided anew is an error with the code Sharding. Of a feed with an outbox,
	// Repair appends records for rows that have neither a record nor a place; their entries come as new ones.
	Repair(ctx context.Context) (int64, error)
}

// Installation is what rowfeed has made in the database for a feed.
type Installation interface {
	// Verify compares the feed's triggers and tables with what they should be. It answers one sentence for each difference,
	// sorted.
	Verify(ctx context.Context) ([]string, error)
	// VerifyParts says why parts of the feed cannot be read, or only slowly; empty if nothing is wrong.
	VerifyParts(ctx context.Context) (problem string, err error)
	// VerifyPartitions answers one sentence for each new partition of which a TRUNCATE is not captured yet. Other writes to
	// its rows are captured.
	VerifyPartitions(ctx context.Context) ([]string, error)
	// Upgrade mends the feed's triggers and tables, without a moment in which a change is not captured, and answers what
	// was wrong. Changes made while triggers were missing are not known: Check finds what it can of them. Keys of rows that
	// came or went with partitions are recorded.
	Upgrade(ctx context.Context) (mended []string, err error)
	// Reshard divides the feed by another number of data shards, and answers whether that changed anything. It begins a new
	// generation: earlier cursors are refused with the code GenerationChanged. Writers, publishers and readers of the whole
	// feed go on; requests for a part answer the code Sharding until every key has its shard. When it breaks off, call it
	// again with the same number. progress may be nil; it is told how many keys this call has looked at.
	Reshard(ctx context.Context, dataShards int, progress func(keys int64)) (changed bool, err error)
	// BackFill gives places to the rows of a feed with an outbox that have neither a record nor a place, and answers how
	// many. They get ULIDs below all that their shard has given, in batches in key order. Their times are those of the
	// feed's TimeColumn, if that is before the live part of their shard, else the last millisecond before it. While it runs,
	// cursors below the live part are refused with the code Filling. When it breaks off, call it again. progress may be nil.
	BackFill(ctx context.Context, progress func(rows int64)) (placed int64, err error)
	// SetRetention changes how long the entries of a feed with an outbox are kept. Its publisher knows within a minute.
	SetRetention(ctx context.Context, to feedtype.Retention) error
	// Retention is how long entries are kept, as last read.
	Retention() feedtype.Retention
	// Bump gives the feed a new generation, and answers it: the database's time in seconds, or one more than before if that
	// is higher. Earlier cursors are refused with the code GenerationChanged, and consumers start over. It is for a database
	// that lost commits, after a restored backup or a failover to a replica that lagged. A database of another identity is
	// the feed's from then on.
	Bump(ctx context.Context) (generation int64, err error)
	// AdoptDatabase takes the database for the feed's own, with positions and cursors as they are, and answers whether that
	// was needed. It is for a database that has moved with all its commits.
	AdoptDatabase(ctx context.Context) (changed bool, err error)
}

// Grantor lets logins of the database use a feed.
type Grantor interface {
	// Granted are the logins that may use the feed by Grant, as last read.
	Granted() feedtype.Grants
	// Grant gives logins the rights on rowfeed's own tables and functions that writers and readers of the feed need. Rights
	// on the feed's table are for its owner to give. They outlive Upgrade, and dropping the feed takes them away. Granting
	// again changes nothing. The owner of rowfeed's objects is refused. A database without logins answers
	// errors.ErrUnsupported.
	Grant(ctx context.Context, logins feedtype.Grants) error
	// Revoke takes these rights away. Logins keep what they need for other feeds, and what they own.
	Revoke(ctx context.Context, logins feedtype.Grants) error
	// PrintGrants is the script that Grant, or Revoke, would run. Run it before anything else is granted.
	PrintGrants(ctx context.Context, logins feedtype.Grants, revoke bool) ([]dialect.Step, error)
}

// Publications is what operators do with the keys of a feed.
type Publications interface {
	// RepublishWhere publishes again every row for which the SQL condition holds (every row if it is empty), in batches of
	// a transaction each. Hidden rows stay hidden. each may be nil; it is called after every batch with the number of rows
	// so far, and ends the work with its error. The condition is the operator's own SQL and runs as it is written.
	RepublishWhere(ctx context.Context, where string, batch int, each func(rows int64) error) (int64, error)
	// CountWhere counts the rows for which the condition holds.
	CountWhere(ctx context.Context, where string) (int64, error)
	// UnknownKeys answers those of the keys of which the feed has neither a row nor a position. A key that no row can have
	// is an error with the code InvalidRequest.
	UnknownKeys(ctx context.Context, keys ...feedtype.Key) ([]feedtype.Key, error)
	// DeleteSQL are the statements of rowfeed.Feed.Delete for writers in other languages: to be run in one transaction, each
	// with the key's values as parameters. There are none for a feed with ULIDs.
	DeleteSQL() []string
	// Purge forgets, in batches, the deletes that were published longer ago than the feed keeps them, or the entries of a
	// feed with an outbox that need not be kept, and answers how many. A cursor that has not passed them is refused from
	// then on (TombstonesExpired, EntriesExpired). A publisher does it every minute.
	Purge(ctx context.Context) (int, error)
}
