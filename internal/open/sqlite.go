package open

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	driver "modernc.org/sqlite"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
)

// sqliteConnections bounds the pool: readers run beside each other, writers take
// turns anyway.
const sqliteConnections = 8

// sqliteDefaults hold where the URL does not say otherwise. WAL lets readers and a
// writer run at the same time; less than FULL forgets commits after a power cut.
var sqliteDefaults = []struct{ name, alias, value string }{
	{"_busy_timeout", "_timeout", "10000"},
	{"_journal_mode", "_journal", "WAL"},
	{"_synchronous", "_sync", "FULL"},
}

func parseSQLite(rawURL, rest string, o Options) (*database, error) {
	path, rawQuery, _ := strings.Cut(rest, "?")
	path = strings.TrimPrefix(path, "//") // sqlite:///abs, and sqlite://rel as other tools have it
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded // otherwise a '%' in it is meant as it stands
	}
	query, err := url.ParseQuery(rawQuery)
	switch {
	case err != nil:
		return nil, malformed(rawURL, "what follows the '?' are no parameters; a '?' in a file's name is written %3F")
	case path == "":
		return nil, malformed(rawURL, "it names no file")
	case strings.ContainsRune(path, 0):
		return nil, malformed(rawURL, "a file's name has no NUL")
	case strings.Contains(path, ":memory:") || query.Get("mode") == "memory":
		return nil, malformed(rawURL, "a database in memory would be another one for each connection; rowfeed needs a file")
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
	if err := checkFile(rawURL, path, o.MustExist || query.Get("mode") == "rw" || query.Get("mode") == "ro"); err != nil {
		return nil, err
	}
	for _, d := range sqliteDefaults {
		readOnly := query.Get("mode") == "ro" || query.Get("immutable") == "1"
		if !query.Has(d.name) && !query.Has(d.alias) && !(readOnly && d.name == "_journal_mode") {
			query.Set(d.name, d.value)
		}
	}
	// Transactions that write say so when they begin: one that begins by reading is
	// refused at its first write when another writer came between, at once and
	// whatever the busy timeout.
	query.Set("_txlock", "immediate")
	query.Set("_error_rc", "1") // no "out of memory" for a file that cannot be opened
	escaped := (&url.URL{Path: path}).EscapedPath()
	return &database{
		dialect: sqlite.New(),
		where:   "file " + path,
		open: func() (*sql.DB, error) {
			connector, err := driver.NewConnector("file:" + escaped + "?" + query.Encode())
			if err != nil {
				return nil, err
			}
			return limit(sql.OpenDB(connector), sqliteConnections, 0), nil
		},
	}, nil
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
