package consume

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// setAside stores an entry as a dead letter and moves the cursor past it.
func (a *applier) setAside(ctx context.Context, e feedtype.Entry, to feedtype.Cursor, attempts int, cause error) error {
	err := a.inTx(ctx, func(tx *sql.Tx, t *batchTx) error {
		key := e.Key.AppendJSON(nil)
		n, err := a.db.exec(ctx, t.q, "set_aside", dialect.Args{"consumer": a.c.Name, "feed": a.feed,
			"shard": a.cursor.row.Shard, "digest": keyDigest(key), "key": string(key), "generation": e.Generation,
			"position": e.Position, "op": string(e.Op), "aside": feedtype.LetterAside, "attempts": attempts,
			"error": letterText(cause), "data_shard": e.Shard})
		if err = oneRow(n, err); err != nil {
			return err
		}
		return t.finish(ctx, tx, to, 1, 1)
	})
	if err == nil {
		a.complete = true
		a.db.Store.Observer.SetAside(feedtype.SetAsideEvent{Consumer: a.c.Name, Feed: a.feed, Shard: max(a.shard, 0),
			ShardCount: a.count, Attempts: attempts, Key: string(e.Key.AppendJSON(nil)), Position: e.Position,
			Err: cause})
	}
	return err
}

// collapse removes the entries of keys that are set aside from a batch, and records them in their dead letters. So no
// version of a key overtakes another.
func (d *deadLetters) collapse(ctx context.Context, q dialect.Querier,
	entries []feedtype.Entry) ([]feedtype.Entry, error) {
	digests := keyDigests(entries)
	aside, err := d.among(ctx, q, digests)
	if err != nil {
		return nil, err
	}
	if len(aside) == 0 {
		return entries, nil
	}
	var rest []feedtype.Entry
	for i, e := range entries {
		if !aside[digests[i]] {
			rest = append(rest, e)
			continue
		}
		args := d.args()
		args["generation"], args["position"], args["op"] = e.Generation, e.Position, string(e.Op)
		args["data_shard"], args["digest"] = e.Shard, digests[i]
		n, err := d.db.exec(ctx, q, "collapse", args)
		if err = oneRow(n, err); err != nil {
			return nil, err // dropped meanwhile: the entry must be handed over
		}
	}
	return rest, nil
}

// indexesAside returns the indexes of the entries whose keys are set aside. It sends no statement if the shard has no
// dead letters.
func (d *deadLetters) indexesAside(ctx context.Context, entries []feedtype.Entry) (map[int]bool, error) {
	if d.cursor.row.Aside == 0 {
		return nil, nil
	}
	digests := keyDigests(entries)
	found, err := d.among(ctx, d.db.Store.On(), digests)
	if err != nil {
		return nil, err
	}
	aside := map[int]bool{}
	for i, digest := range digests {
		if found[digest] {
			aside[i] = true
		}
	}
	return aside, nil
}

// among returns which of the digests are of keys that are set aside. It also notes whether an operator has asked for a
// release. It sends one statement, unless both keys and letters are many.
func (d *deadLetters) among(ctx context.Context, q dialect.Querier, digests []string) (map[string]bool, error) {
	const chunk = 500 // of letters, or of parameters, whose number databases limit
	type found struct{ digest, state string }
	aside := map[string]bool{}
	for from := 0; from < len(digests); from += chunk {
		name, args, few := "aside", d.args(), d.cursor.row.Aside <= chunk
		if !few {
			name, args["retry"] = "aside_among", feedtype.LetterRetry
			args["digests"] = dialect.List(digests[from:min(from+chunk, len(digests))])
		}
		letters, err := store.All(ctx, d.db.Store, q, statements, name, args,
			func(rows dialect.Rows) (f found, err error) { return f, rows.Scan(&f.digest, &f.state) })
		if err != nil {
			return nil, err
		}
		for _, l := range letters {
			aside[l.digest] = true
			d.cursor.releases = d.cursor.releases || l.state == feedtype.LetterRetry
		}
		if few {
			break
		}
	}
	return aside, nil
}

// deadLetters reads and changes the dead letters of one shard.
type deadLetters struct {
	*assignment
	cursor *cursorState
}

// args name the shard.
func (d *deadLetters) args() dialect.Args { return rowArgs(d.c.Name, d.feed, d.cursor.row.Shard) }

// keyDigest returns a digest of fixed length for a key of any length.
func keyDigest(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

func keyDigests(entries []feedtype.Entry) []string {
	digests := make([]string, len(entries))
	for i, e := range entries {
		digests[i] = keyDigest(e.Key.AppendJSON(nil))
	}
	return digests
}

// letterText returns the text of an error as a dead letter stores it.
func letterText(err error) string { return store.ErrorText(err, 4000) }
