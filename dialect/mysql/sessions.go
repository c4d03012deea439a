package mysql

import (
	"context"
	"database/sql"
	_ "embed" // for sessions.sql
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
)

//go:embed sessions.sql
var sessionsFile string

var sessions = dialect.NewStatements(sessionsFile)

// Writers implements [dialect.Gaps]. A rollback does not reset AUTO_INCREMENT, and a crash never resets it below a
// number that was committed.
//
// MariaDB shows its lists to a login with the right PROCESS. MySQL's INNODB_TRX cannot be used (see errCannotShow), but
// its metadata locks can: see tableHolders.
//
// A statement draws a seq, and InnoDB may begin its transaction only right afterwards. So Writers first reads
// which sessions are running a statement, and then which transactions are open. A session that had drawn a seq
// before the first query has ended its transaction, or is in one of the two lists: it was running that
// statement, or its transaction has an id by now.
//
// A transaction gets an id when it writes its first row, however long it has been open, and keeps the id while
// it is prepared.
func (d database) Writers(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (open []dialect.Writer, told bool, err error) {
	var kind int
	err = dialect.One(ctx, q, syntax, statement(sessions, "numbers_alone"), nil, &kind)
	switch {
	case err != nil || kind == others:
		return nil, false, d.untold(err)
	case kind == aloneMySQL:
		open, told, err = d.tableHolders(ctx, q, f)
		return open, told && err == nil, d.untold(err)
	}
	busy, err := dialect.All(ctx, q, syntax, statement(sessions, "running"), nil,
		func(rows dialect.Rows) (w dialect.Writer, err error) { return w, rows.Scan(&w.Session) })
	if err != nil {
		return nil, false, d.untold(err)
	}
	transactions, told, err := d.openNow(ctx, q, f)
	if err != nil || !told {
		return nil, false, d.untold(err)
	}
	for _, w := range busy {
		if !slices.ContainsFunc(transactions, func(t dialect.Writer) bool {
			return t.Session == w.Session && t.Transaction != ""
		}) {
			open = append(open, w)
		}
	}
	for _, t := range transactions {
		if t.Transaction != "" {
			open = append(open, t)
		}
	}
	return open, true, nil
}

// untold ignores errors that mean that the server does not tell.
func (d database) untold(err error) error {
	if class := d.Classify(err); cannotShow(err) || class == dialect.ClassPermission ||
		class == dialect.ClassUndefined {
		return nil
	}
	return err
}

// These are the answers of numbers_alone.
const (
	others = iota
	aloneMySQL
	aloneMariaDB
)

const (
	// firstPointer is greater than all ids of transactions. A transaction without an id is shown with 0 or, by
	// some versions, with an address in memory.
	firstPointer = 1 << 48
	// The server leaves out transactions if the list is larger than 16 MiB. A transaction needs at most 1.3 KB, and 16
	// KB more if it waits for a lock. The list also has the pairs of transactions that wait for the same lock: 1,450
	// transactions that wait for one row are too many.
	maxShown, maxLockWaits = 4000, 300
)

// openNow returns the open transactions, and whether the list is new and complete.
func (d database) openNow(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (open []dialect.Writer, fresh bool, err error) {
	mark := fmt.Sprintf("/* %x */", rand.Uint64())
	nothing := func(dialect.Rows) (none struct{}, err error) { return none, nil }
	if _, err := dialect.All(ctx, q, syntax, sessions.For(syntax, f, "read_a_row"), nil, nothing); err != nil {
		return nil, false, err
	}
	lockWaits := 0
	all, err := dialect.All(ctx, q, syntax, statement(sessions, "open_transactions"),
		dialect.Args{"mark": dialect.SQL(mark)},
		func(rows dialect.Rows) (struct{}, error) {
			var t dialect.Writer
			var thread, number uint64
			var query string
			var waits bool
			if err := rows.Scan(&thread, &number, &query, &waits); err != nil {
				return struct{}{}, err
			}
			if waits {
				lockWaits++
			}
			if strings.Contains(query, mark) {
				fresh = true
				return struct{}{}, nil
			}
			if t.Session, t.Orphan = strconv.FormatUint(thread, 10), thread == 0; number > 0 && number < firstPointer {
				t.Transaction = strconv.FormatUint(number, 10)
			}
			open = append(open, t)
			return struct{}{}, nil
		})
	return open, fresh && len(all) < maxShown && lockWaits < maxLockWaits, err
}

// tableHolders implements Writers for MySQL. It returns the transactions that hold a metadata lock for writing on the
// table. A statement acquires this lock before it draws its first number, also for the tables of triggers. The lock is
// released after the commit, or by the rollback to a savepoint that removes the rows.
//
// XA PREPARE transfers the lock to the server, under another name. Such a lock may belong to any transaction that was
// open before. The list is read piece by piece, so a lock that is just being transferred may be missing in both places.
// A lock is transferred only once, so tableHolders reads the list twice. Both lists must show the reader's own lock.
func (d database) tableHolders(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (open []dialect.Writer, told bool, err error) {
	table, number := f.Waiting()
	nothing := func(dialect.Rows) (none struct{}, err error) { return none, nil }
	if _, err := dialect.All(ctx, q, syntax, statement(sessions, "lock_for_reading"), dialect.Args{
		"table": dialect.SQL(dialect.Qualified(syntax, table)), "number": dialect.SQL(number)}, nothing); err != nil {
		return nil, false, err
	}
	for range 2 {
		own := false
		_, err := dialect.All(ctx, q, syntax, statement(sessions, "metadata_locks"), inTable(table),
			func(rows dialect.Rows) (struct{}, error) {
				var w dialect.Writer
				var mine *bool
				var reads bool
				err := rows.Scan(&mine, &reads, &w.Orphan, &w.Transaction)
				own = own || mine != nil && *mine
				if w.Session = w.Transaction; !reads && !slices.Contains(open, w) {
					open = append(open, w)
				}
				return struct{}{}, err
			})
		if err != nil || !own {
			return nil, false, err
		}
	}
	err = dialect.One(ctx, q, syntax, statement(sessions, "locks_complete"), nil, &told) // asked last
	return open, told, err
}

// Blockers implements [dialect.Inspection]. MySQL's performance schema tells which sessions have the table of changes
// open for writing. MariaDB's is off by default; then the list has all transactions that wrote to any table. If
// the login lacks the rights for both, the list is empty, and Unseen names the missing right.
//
// MySQL sometimes cannot list transactions (errCannotShow), or does not list them for this login. The result
// then includes sessions that have the table of changes open but have written nothing.
func (d database) Blockers(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) ([]dialect.Blocker, *dialect.Unseen, error) {
	if f.ULIDs != nil {
		if _, named, err := d.Holders(ctx, q, f); err == nil && named == dialect.HoldersAll {
			return nil, nil, nil
		}
		return d.writers(ctx, q)
	}
	var tells int
	err := dialect.One(ctx, q, syntax, statement(sessions, "tells_locks"), nil, &tells)
	if err == nil && tells == 1 {
		found, err := d.blockers(ctx, q, "blockers", inTable(f.Written()))
		if cannotShow(err) || d.Classify(err) == dialect.ClassPermission {
			found, err = d.blockers(ctx, q, "blockers_by_locks", inTable(f.Written()))
		}
		if err == nil {
			lockers, err := d.blockers(ctx, q, "lockers", inTable(f.Source))
			return append(lockers, found...), nil, err
		}
	}
	return d.writers(ctx, q)
}

// writers returns all transactions that wrote to any table.
func (d database) writers(ctx context.Context, q dialect.Querier) ([]dialect.Blocker, *dialect.Unseen, error) {
	found, err := d.blockers(ctx, q, "all_writers", nil)
	switch {
	case cannotShow(err):
		return nil, &dialect.Unseen{Cause: "the server cannot list transactions, because a running statement " +
			"contains bytes that are not text, and this login may not read the metadata locks",
			Next: "try again, or grant the login SELECT on performance_schema"}, nil
	case err == nil || d.Classify(err) != dialect.ClassPermission:
		return found, nil, err
	}
	var login string
	if err := dialect.One(ctx, q, syntax, statement(roles, "login"), nil, &login); err != nil {
		return nil, nil, err
	}
	at := strings.LastIndex(login, "@") // a host has no @, but a user may
	login = literal(login[:at]) + "@" + literal(login[at+1:])
	return nil, &dialect.Unseen{Cause: "the login " + login + " cannot see transactions of other " +
		"logins: it lacks the right PROCESS",
		Next: "run `GRANT PROCESS ON *.* TO " + login + "`"}, nil
}

// cannotShow tells whether err is errCannotShow.
func cannotShow(err error) bool {
	number, _ := dialect.CodeField(err, "Number")
	return number == errCannotShow
}

func (d database) blockers(ctx context.Context, q dialect.Querier, name string,
	args dialect.Args) ([]dialect.Blocker, error) {
	return dialect.All(ctx, q, syntax, statement(sessions, name), args,
		func(rows dialect.Rows) (dialect.Blocker, error) {
			v, err := dialect.ScanStrings(rows, 6)
			if err != nil {
				return dialect.Blocker{}, err
			}
			return dialect.Blocker{Session: v[0], User: v[1], Host: v[2], AgeMicros: micros(v[3]), Statement: v[4],
				Scope: v[5]}, nil
		})
}

// Backlog implements [dialect.Inspection].
func (d database) Backlog(ctx context.Context, q dialect.Querier, f *dialect.Feed, limit int,
	shard ...int) (count, ageMicros int64, err error) {
	name, args := "backlog", dialect.Args{"limit": limit}
	switch {
	case f.Outbox && len(shard) > 0:
		name, args["shard"] = "backlog_of_shard", shard[0]
	case f.Outbox:
		name = "backlog_of_outbox"
	}
	var age sql.NullInt64
	err = dialect.One(ctx, q, syntax, sessions.For(syntax, f, name), args, &count, &age)
	return count, max(age.Int64, 0), err
}

// Holders implements [dialect.Sessions]. MySQL lists every lock, MariaDB only locks that other transactions wait for.
func (d database) Holders(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) ([]dialect.Holding, dialect.NamedHolders, error) {
	all, err := d.holders(ctx, q, f, "holders")
	if err == nil && len(all) == 0 {
		var on bool
		if err := dialect.One(ctx, q, syntax, statement(sessions, "has_performance_schema"), nil,
			&on); err != nil || !on {
			return nil, dialect.HoldersNone, err
		}
	}
	if err == nil {
		return all, dialect.HoldersAll, nil
	}
	// MariaDB tells some logins that there is no such table, and others that they may not read it.
	if class := d.Classify(err); class != dialect.ClassUndefined && class != dialect.ClassPermission {
		return nil, dialect.HoldersNone, err
	}
	missed := err
	all, err = d.holders(ctx, q, f, "holders_waited_for")
	switch {
	case err == nil:
		return all, dialect.HoldersWaitedFor, nil
	case d.Classify(err) == dialect.ClassPermission:
		return nil, dialect.HoldersNone, missing(d, "PROCESS", err)
	}
	return nil, dialect.HoldersNone, missing(d, "PROCESS, or SELECT on performance_schema,", missed)
}

// missing adds the name of the missing right to an error, if the error is about a missing right.
func missing(d database, right string, err error) error {
	if d.Classify(err) == dialect.ClassPermission {
		return fmt.Errorf("the right %s is missing: %w", right, err)
	}
	return err
}

func (d database) holders(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	name string) (all []dialect.Holding, err error) {
	args := inTable(f.Names.Table("shards"))
	args["feed"] = "'" + f.Name + "'" // as the lists show it
	_, err = dialect.All(ctx, q, syntax, statement(sessions, name), args,
		func(rows dialect.Rows) (struct{}, error) {
			v, err := dialect.ScanStrings(rows, 11)
			if err != nil {
				return struct{}{}, err
			}
			// LOCK_DATA has the columns of the record's key: 'events', 5.
			_, key, _ := strings.Cut(v[0], ",")
			shard, err := strconv.Atoi(strings.TrimSpace(key))
			if err != nil {
				return struct{}{}, fmt.Errorf("a lock on the record %s: %w", v[0], err)
			}
			all = dialect.AddSession(all, shard, v[1] == "1", dialect.Session{ID: v[2], Transaction: v[3], User: v[4],
				Host: v[5], Application: v[6],
				Age: micros(v[7]), State: v[8], StateAge: micros(v[9]), Statement: v[10]})
			return struct{}{}, nil
		})
	return all, err
}

// micros reads a number of microseconds. It is -1 if the text is not a number.
func micros(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return max(n, 0)
}

// EndHolder implements [dialect.Sessions]. It ends the connection, so it reads the locks
// right before that. In between, the session could still end its transaction and begin another one. MariaDB's
// list of locks may be 100 ms old. Before the second read of that list, EndHolder waits longer than that
// without reading it.
func (d database) EndHolder(ctx context.Context, q dialect.Querier, f *dialect.Feed, h dialect.Holding) (bool, error) {
	all, named, err := d.Holders(ctx, q, f)
	if err == nil && named == dialect.HoldersWaitedFor {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(150 * time.Millisecond):
		}
		all, _, err = d.Holders(ctx, q, f)
	}
	if err != nil {
		return false, err
	}
	for _, now := range all {
		if now.Shard == h.Shard && now.Holder != nil && now.Holder.ID == h.Holder.ID &&
			now.Holder.Transaction == h.Holder.Transaction {
			id, err := strconv.ParseUint(h.Holder.ID, 10, 64)
			if err != nil {
				return false, err
			}
			_, err = dialect.Exec(ctx, q, syntax, statement(sessions, "end_holder"),
				dialect.Args{"session": dialect.SQL(strconv.FormatUint(id, 10))})
			if number, _ := dialect.CodeField(err, "Number"); number == errNoSuchThread {
				return false, nil
			}
			return err == nil, missing(d, "CONNECTION ADMIN (MariaDB; SUPER before 10.5) or CONNECTION_ADMIN (MySQL)",
				err)
		}
	}
	return false, nil
}
