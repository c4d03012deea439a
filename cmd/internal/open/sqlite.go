package open

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
)

// sqliteConnections limits the pool: readers run concurrently, writers take turns.
const sqliteConnections = 8

// sqliteDefaults apply unless the URL sets something else. WAL lets readers and a writer run at the same time. Below
// FULL, commits may be lost in a power cut.
var sqliteDefaults = []struct{ name, alias, value string }{
	{"_busy_timeout", "_timeout", "10000"},
	{"_journal_mode", "_journal", "WAL"},
	{"_synchronous", "_sync", "FULL"},
}

func parseSQLite(rawURL, rest string, o Options) (*database, error) {
	path, rawQuery, _ := strings.Cut(rest, "?")
	path = strings.TrimPrefix(path, "//") // sqlite:///abs, and sqlite://rel as in other tools
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded // otherwise a '%' is part of the name
	}
	query, err := url.ParseQuery(rawQuery)
	switch {
	case err != nil:
		return nil, malformed(rawURL, "the part after '?' is not a list of parameters; a '?' in a file's name is "+
			"written %3F")
	case path == "":
		return nil, malformed(rawURL, "it names no file")
	case strings.ContainsRune(path, 0):
		return nil, malformed(rawURL, "a file's name has no NUL")
	case strings.Contains(path, ":memory:") || query.Get("mode") == "memory":
		return nil, malformed(rawURL,
			"each connection would get its own database in memory; rowfeed needs a file")
	}
	for name := range query {
		switch name {
		case "mode", "vfs", "immutable", "nolock", "psow":
		default:
			if !strings.HasPrefix(name, "_") {
				return nil, malformed(rawURL, "it has no parameter "+name+"; a '?' in a file's name is written %3F")
			}
		}
	}
	path = filepath.Clean(path)
	mustExist := o.MustExist || query.Get("mode") == "rw" || query.Get("mode") == "ro"
	if err := checkFile(rawURL, path, mustExist); err != nil {
		return nil, err
	}
	readOnly := query.Get("mode") == "ro" || query.Get("immutable") == "1"
	for _, d := range sqliteDefaults {
		if !query.Has(d.name) && !query.Has(d.alias) && !(readOnly && d.name == "_journal_mode") {
			query.Set(d.name, d.value)
		}
	}
	// Transactions that write say so when they begin. Otherwise SQLite refuses the first write after a read, at once,
	// if another writer has written in between. The busy timeout does not apply.
	query.Set("_txlock", "immediate")
	query.Set("_error_rc", "1") // no "out of memory" for a file that cannot be opened
	// SQLite must never create the file: otherwise it would replace a file that was moved away by an empty one.
	if !readOnly {
		query.Set("mode", "rw")
	}
	escaped := (&url.URL{Path: path}).EscapedPath()
	return &database{
		dialect: sqlite.New(),
		where:   "file " + path,
		connect: func() (driver.Connector, error) {
			connector, err := sqlitedriver.NewConnector("file:" + escaped + "?" + query.Encode())
			return &sameFile{Connector: connector, path: path, create: !mustExist}, err
		},
		connections: sqliteConnections,
		advise:      func(err error) (cause, next string) { return adviseSQLite(path, readOnly, err) },
	}, nil
}

// adviseSQLite explains why a file cannot be used, and what to do.
func adviseSQLite(path string, readOnly bool, err error) (cause, next string) {
	const rights = "give the user that rowfeed runs as the right to read and write the file and its directory, " +
		"where SQLite also keeps a -wal and a -shm file"
	if denied := accessible(path, !readOnly); denied != nil {
		return fmt.Sprintf("file %s may not be read and written (%v)", path, denied), rights
	}
	if denied := accessible(filepath.Dir(path), !readOnly); denied != nil {
		return fmt.Sprintf("no files may be made in the directory of %s (%v)", path, denied), rights
	}
	var coded *sqlitedriver.Error
	if errors.As(err, &coded) {
		switch coded.Code() & 0xff {
		case sqlite3.SQLITE_NOTADB:
			return fmt.Sprintf("file %s is not a SQLite database, or it is encrypted", path), "check the path"
		case sqlite3.SQLITE_CORRUPT:
			return fmt.Sprintf("file %s is damaged",
				path), "restore it from a backup, and run `rowfeed feed bump` for its feeds"
		case sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH:
			return fmt.Sprintf("file %s may not be written", path), rights
		case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR:
			return fmt.Sprintf("file %s cannot be opened",
				path), "check the file, its directory and the file system they are on"
		}
	}
	return fmt.Sprintf("file %s cannot be used", path), "check the file, and the parameters in the URL"
}

func checkFile(rawURL, path string, mustExist bool) error {
	fail := func(code rowfeed.Code, cause, next string) error {
		return &rowfeed.Error{Code: code, Object: "database " + rawURL, Cause: cause, Next: next}
	}
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return fail(rowfeed.Failed, path+" is a directory", "name a file in it")
		}
		return nil
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fail(rowfeed.Failed, "there is no directory "+folder, "create it, or check the path")
	}
	if mustExist {
		return fail(rowfeed.NotInitialized, "there is no file "+path,
			"check --db and the working directory, or create the database with `rowfeed init`")
	}
	return nil
}
