package dialect

import (
	"context"
	"strings"
)

// ReadShard is a query for a shard's row of the table of shards, for [ScanShard], with more
// columns of the database's own.
func ReadShard(s Spelling, b *Builder, f *Feed, shard int, more ...string) string {
	return "SELECT " + strings.Join(append([]string{"time_ms, ulid_high, ulid_low, witness", s.Now()}, more...), ", ") + " FROM " + Qualified(s, f.Names.Table("shards")) +
		" WHERE feed = " + b.Arg(f.Name) + " AND shard = " + b.Arg(shard)
}

// ScanShard runs a query of ReadShard; sql.ErrNoRows where the shard has no row.
func ScanShard(ctx context.Context, q Querier, shard int, query string, args []any, more ...any) (Shard, error) {
	row := Shard{Shard: shard}
	err := QueryRow(ctx, q, query, args, append([]any{&row.TimeMillis, &row.High, &row.Low, &row.Witness, &row.Now}, more...)...)
	return row, err
}

// NewShard is an INSERT of a shard's row in the state of one that has given nothing.
func NewShard(s Spelling, b *Builder, f *Feed, shard int) string {
	return "INSERT INTO " + Qualified(s, f.Names.Table("shards")) + " (feed, shard, time_ms, ulid_high, ulid_low, witness) VALUES (" +
		b.Arg(f.Name) + ", " + b.Arg(shard) + ", 0, 0, 0, '')"
}

// WriteShard is an UPDATE of a shard's row.
func WriteShard(s Spelling, b *Builder, f *Feed, shard int, next ULIDState, witness string) string {
	return "UPDATE " + Qualified(s, f.Names.Table("shards")) + " SET time_ms = " + b.Arg(next.TimeMillis) + ", ulid_high = " + b.Arg(next.High) +
		", ulid_low = " + b.Arg(next.Low) + ", witness = " + b.Arg(witness) + " WHERE feed = " + b.Arg(f.Name) + " AND shard = " + b.Arg(shard)
}
