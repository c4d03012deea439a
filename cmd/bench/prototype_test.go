package bench

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// prototype publishes with bare statements and nothing around them: no settings, no checks, no hidden keys, and tables
// with only what the statements need. rowfeed's publisher is compared with it.
type prototype struct {
	*bed
	source string
	pool   *sql.DB
}

func (b *bed) prototype(source string) *prototype {
	p := &prototype{bed: b, source: source}
	switch b.Engine.Name {
	case "mariadb":
		p.pool, _ = b.Open("?tx_isolation='READ-COMMITTED'")
	case "mysql":
		p.pool, _ = b.Open("?transaction_isolation='READ-COMMITTED'")
	default:
		p.pool = b.Pool
	}
	return p
}

func (p *prototype) create() {
	p.Helper()
	switch p.Family {
	case "postgres":
		p.SQL("CREATE TABLE proto_changes (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id bigint NOT NULL)")
		p.SQL("CREATE TABLE proto_positions (id bigint PRIMARY KEY, feed_sync_id bigint NOT NULL UNIQUE, " +
			"deleted boolean NOT NULL)")
	case "mysql":
		p.SQL("CREATE TABLE proto_changes (seq bigint AUTO_INCREMENT PRIMARY KEY, id bigint NOT NULL)")
		p.SQL("CREATE TABLE proto_positions (id bigint PRIMARY KEY, feed_sync_id bigint NOT NULL, " +
			"deleted tinyint NOT NULL, KEY (feed_sync_id))")
	default:
		p.SQL("CREATE TABLE proto_changes (seq INTEGER PRIMARY KEY, id bigint NOT NULL)")
		p.SQL("CREATE TABLE proto_positions (id INTEGER PRIMARY KEY, feed_sync_id bigint NOT NULL UNIQUE, " +
			"deleted bigint NOT NULL)")
	}
	p.SQL("CREATE TABLE proto_sequences (name varchar(40) PRIMARY KEY, last bigint NOT NULL)")
	p.SQL("INSERT INTO proto_sequences VALUES ('f', 0)")
}

func (p *prototype) drop() {
	p.Helper()
	for _, table := range []string{"changes", "positions", "sequences"} {
		p.SQL("DROP TABLE proto_" + table)
	}
}

// record makes a change of every row.
func (p *prototype) record() {
	p.Helper()
	p.SQL("INSERT INTO proto_changes (id) SELECT id FROM " + p.source + " ORDER BY id")
}

// pass publishes one batch. It returns 0 if no key is pending.
func (p *prototype) pass(size int) (keys int) {
	p.Helper()
	keys, err := p.batch(p.Context(), size)
	p.Must(err)
	return keys
}

func (p *prototype) batch(ctx context.Context, size int) (int, error) {
	tx, err := p.pool.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	lock := "SELECT last FROM proto_sequences WHERE name = 'f'"
	if p.HasServer() {
		lock += " FOR UPDATE"
	}
	var last int64
	if err := tx.QueryRowContext(ctx, lock).Scan(&last); err != nil {
		return 0, err
	}
	publish := p.publishSQLite
	switch p.Family {
	case "postgres":
		publish = p.publishPostgres
	case "mysql":
		publish = p.publishMySQL
	}
	n, err := publish(ctx, tx, size, last)
	if err != nil || n == 0 {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx,
		fmt.Sprintf("UPDATE proto_sequences SET last = %d WHERE name = 'f'", last+n)); err != nil {
		return 0, err
	}
	return int(n), tx.Commit()
}

func (p *prototype) publishPostgres(ctx context.Context, tx *sql.Tx, size int, last int64) (int64, error) {
	return affected(tx.ExecContext(ctx, `WITH gone AS (
  DELETE FROM proto_changes WHERE seq = ANY (ARRAY(SELECT seq FROM proto_changes ORDER BY seq LIMIT $1))
  RETURNING seq, id),
keys AS (SELECT id, max(seq) AS seq FROM gone GROUP BY id)
INSERT INTO proto_positions (id, feed_sync_id, deleted)
SELECT k.id, $2 + row_number() OVER (ORDER BY k.seq), NOT EXISTS (SELECT FROM `+p.source+` t WHERE t.id = k.id)
FROM keys k
ON CONFLICT (id) DO UPDATE SET feed_sync_id = excluded.feed_sync_id, deleted = excluded.deleted`, size, last))
}

func (p *prototype) publishMySQL(ctx context.Context, tx *sql.Tx, size int, last int64) (int64, error) {
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT seq, id FROM proto_changes ORDER BY seq LIMIT %d", size))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	type run struct{ first, n int64 }
	var runs []run
	var ids []int64
	lasts := make(map[int64]int, size)
	for rows.Next() {
		var seq, id int64
		if err := rows.Scan(&seq, &id); err != nil {
			return 0, err
		}
		if k := len(runs) - 1; k >= 0 && runs[k].first+runs[k].n == seq {
			runs[k].n++
		} else {
			runs = append(runs, run{seq, 1})
		}
		lasts[id] = len(ids)
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil || len(ids) == 0 {
		return 0, err
	}
	for _, r := range runs {
		if _, err := tx.ExecContext(ctx,
			fmt.Sprintf("DELETE FROM proto_changes WHERE seq >= %d ORDER BY seq LIMIT %d", r.first, r.n)); err != nil {
			return 0, err
		}
	}
	var list strings.Builder
	for i, id := range ids {
		if lasts[id] == i {
			fmt.Fprintf(&list, ",%d", id)
		}
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO proto_positions (id, feed_sync_id, deleted)
SELECT j.id, %d + j.rn, t.id IS NULL
FROM JSON_TABLE('[%s]', '$[*]' COLUMNS (rn FOR ORDINALITY, id BIGINT PATH '$')) j LEFT JOIN %s t ON t.id = j.id
ON DUPLICATE KEY UPDATE feed_sync_id = VALUES(feed_sync_id), deleted = VALUES(deleted)`, last, list.String()[1:],
		p.source))
	return int64(len(lasts)), err
}

func (p *prototype) publishSQLite(ctx context.Context, tx *sql.Tx, size int, last int64) (int64, error) {
	var highest sql.NullInt64
	err := tx.QueryRowContext(ctx,
		fmt.Sprintf("SELECT max(seq) FROM (SELECT seq FROM proto_changes ORDER BY seq LIMIT %d)", size)).Scan(&highest)
	if err != nil || !highest.Valid {
		return 0, err
	}
	n, err := affected(tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO proto_positions (id, feed_sync_id, deleted)
SELECT k.id, %d + row_number() OVER (ORDER BY k.seq), NOT EXISTS (SELECT 1 FROM %s t WHERE t.id = k.id)
FROM (SELECT id, max(seq) AS seq FROM proto_changes WHERE seq <= %d GROUP BY id) k WHERE 1
ON CONFLICT (id) DO UPDATE SET feed_sync_id = excluded.feed_sync_id, deleted = excluded.deleted`, last, p.source,
		highest.Int64)))
	if err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("DELETE FROM proto_changes WHERE seq <= %d", highest.Int64))
	return n, err
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
