package open

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
)

func TestRedactHidesPasswordsInURLs(t *testing.T) {
	for text, want := range map[string]string{
		"sqlite:path.db":                           "sqlite:path.db",
		"sqlite:a:b@c.db":                          "sqlite:a:b@c.db",
		"postgres://u@h/d":                         "postgres://u@h/d",
		"postgres://h:5432/d":                      "postgres://h:5432/d",
		"postgres://u:pw@h:5432/d?sslmode=disable": "postgres://u:***@h:5432/d?sslmode=disable",
		"postgres://u:p@ss:w/rd?@h/d":              "postgres://u:***@h/d",
		"mysql://u:@h/d":                           "mysql://u:***@h/d",
		"postgres:///d?user=u&password=pw&x=1":     "postgres:///d?user=u&password=***&x=1",
		"postgres://h/d?sslpassword=pw":            "postgres://h/d?sslpassword=***",
		"u:pw@tcp(h:3306)/d":                       "u:***@tcp(h:3306)/d",
		"host=h password=pw user=u":                "host=h password=*** user=u",
		"host=h Password = 'p w' user=u":           "host=h Password = *** user=u",
		"Server=h;User Id=sa;Pwd=p w&x;Database=d": "Server=h;User Id=sa;Pwd=***;Database=d",
		"server=h;password={p;w};user id=sa":       "server=h;password=***;user id=sa",
		"mysql://me:pw":                            "mysql://me:***",
		"me:pw":                                    "me:***",
		"postgres://h1:5432,h2:5433/d":             "postgres://h1:5432,h2:5433/d",
		"postgres://[::1]:5432/d":                  "postgres://[::1]:5432/d",
		"postgres://[::1]/d":                       "postgres://[::1]/d",
		"sqlserver://h:1433?database=d":            "sqlserver://h:1433?database=d",
		"nonsense":                                 "nonsense",
		"":                                         "",
	} {
		if got := Redact(text); got != want {
			t.Errorf("Redact(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestScrubHidesPasswordsInErrors(t *testing.T) {
	const rawURL = "postgres://u:p%40ssword@h/d"
	inner := errors.New("cannot use postgres://u:p%40ssword@h/d\n\tas p@ssword is wrong, password=p@ssword")
	err := Scrub(rawURL, inner)
	if want := "cannot use postgres://u:***@h/d as *** is wrong, password=***"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, inner) {
		t.Error("the error behind it cannot be found")
	}
	if got := ScrubText("mysql://u:a@h/d", "bad connection u:a@h"); got != "bad connection u:***@h" {
		t.Errorf("a short password: %q", got)
	}
	if Scrub(rawURL, nil) != nil {
		t.Error("nil became an error")
	}
}

// TestInvalidURLsAreRefusedWithoutPassword: every refusal has a code, shows no password, and says what to do.
func TestInvalidURLsAreRefusedWithoutPassword(t *testing.T) {
	for _, rawURL := range []string{
		"", "nonsense", "oracle://u:hunter22@h/d", "sqlite", "sqlite:", "sqlite://", "sqlite::memory:",
		"sqlite:x.db?mode=memory", "sqlite:what?.db", "sqlite:x.db?%zz", "sqlite:a%00b", "postgres:u:hunter22@h",
		"postgres://u:hunter22/x@h/d", "postgres://u:1/hunter22@h/d", "postgres://u:1?hunter22@h/d",
		"postgres://u:hunter22%@h/d", "postgres://u:hunter22@h:port/d", "postgres://u:hunter22@h/d?sslmode=perhaps",
		"postgres://u:hunter22#x@h/d", "mysql://u:hunter22@h", "mysql://u:hunter22@h/",
		"mysql://u:hunter22@h/d?timeout=soon", "mysql:u:hunter22@tcp(h)/d", "u:hunter22@tcp(h)/d",
		"host=h password=hunter22", "host=127.0.0.1 password=x&hunter22", "Server=h;Uid=sa;Pwd=x hunter22;",
		"sqlserver://sa:hunter22@h", "sqlserver:sa:hunter22@h/d",
		"sqlserver://sa:hunter22@h/d?dial+timeout=soon", "sqlserver://sa:hunter22@h/d?%zz",
		"sqlserver://sa:hunter22@h:port/d", "sqlserver://sa:hunter22/x@h/d",
	} {
		pool, _, err := Open(t.Context(), rawURL, Options{})
		if err == nil {
			pool.Close()
			t.Errorf("%q was opened", rawURL)
			continue
		}
		var e *rowfeed.Error
		if !errors.As(err, &e) || e.Code != rowfeed.InvalidRequest || e.Next == "" {
			t.Errorf("%q: %v", rawURL, err)
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("%q shows the password: %v", rawURL, err)
		}
		if strings.Contains(err.Error(), "SQLite file") {
			t.Errorf("%q is taken for the name of a file: %v", rawURL, err)
		}
	}
}

// TestUnreachableServerIsNamed: the error names the server's address, and no password.
func TestUnreachableServerIsNamed(t *testing.T) {
	for _, rawURL := range []string{"postgres://u:hunter22@127.0.0.1:1/d", "mysql://u:hunter22@127.0.0.1:1/d",
		"mariadb://u:hunter22@127.0.0.1:1/d", "sqlserver://u:hunter22@127.0.0.1:1/d",
		"mysql://u:hunter22@localhost/d?socket=/absent.sock",
		"postgres://u:hunter22@/d?host=/absent"} {
		_, _, err := Open(t.Context(), rawURL, Options{})
		if !errors.Is(err, rowfeed.Unavailable) {
			t.Errorf("%s: %v", rawURL, err)
			continue
		}
		if text := err.Error(); strings.Contains(text, "hunter") || strings.Contains(text, "\n") ||
			!strings.Contains(text, "127.0.0.1:1") && !strings.Contains(text, "/absent") {
			t.Errorf("%s: %s", rawURL, text)
		}
	}
}

func TestURLSchemeSelectsDialect(t *testing.T) {
	for rawURL, want := range map[string]string{
		"sqlite:x.db": "sqlite", "postgres:": "postgres", "postgresql://h/d": "postgres", "mysql://h/d": "mysql",
		"mariadb:": "mysql", "SQLite:x.db": "sqlite", "sqlserver://sa:secret@h/d": "sqlserver",
	} {
		d, err := Dialect(rawURL)
		if err != nil || d.Name != want {
			t.Errorf("%s: %v (%v), want %s", rawURL, d, err, want)
		}
	}
	for _, rawURL := range []string{"oracle:", ""} {
		if d, err := Dialect(rawURL); err == nil {
			t.Errorf("%q is %s", rawURL, d.Name)
		}
	}
}

// TestSQLitePathsMayHaveURLCharacters has file names with characters that have a meaning in URLs.
func TestSQLitePathsMayHaveURLCharacters(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for rawURL, file := range map[string]string{
		"sqlite:plain.db":                           "plain.db",
		"sqlite:with space.db":                      "with space.db",
		"sqlite:what%3F.db":                         "what?.db",
		"sqlite:100%.db":                            "100%.db",
		"sqlite:50%25.db":                           "50%.db",
		"sqlite:a#b&c=d;e.db":                       "a#b&c=d;e.db",
		"sqlite:grün.db":                            "grün.db",
		"sqlite:a:b.db":                             "a:b.db",
		"sqlite:./below.db":                         "below.db",
		"sqlite://slashes.db":                       "slashes.db",
		"sqlite://" + folder + "/absolute.db":       "absolute.db",
		"sqlite:" + folder + "/one.db":              "one.db",
		"sqlite:////" + folder + "/four.db":         "four.db",
		"sqlite:tuned.db?_pragma=cache_size(-4000)": "tuned.db",
		"SQLITE:case.db":                            "case.db",
		"sqlite:" + url.PathEscape("all ?%#&.db"):   "all ?%#&.db",
	} {
		pool, _, err := Open(t.Context(), rawURL, Options{})
		if err != nil {
			t.Errorf("%s: %v", rawURL, err)
			continue
		}
		if _, err := pool.Exec("CREATE TABLE t (a)"); err != nil {
			t.Errorf("%s: %v", rawURL, err)
		}
		pool.Close()
		if info, err := os.Stat(filepath.Join(folder, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s did not make the file %q: %v", rawURL, file, err)
		}
	}
}

// TestSQLiteConnectionsAreDurable checks the settings that rowfeed's guarantees need, on each connection.
func TestSQLiteConnectionsAreDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	read := func(rawURL, pragma string) (value string) {
		t.Helper()
		pool, _, err := Open(t.Context(), rawURL, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if err := pool.QueryRow("PRAGMA " + pragma).Scan(&value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000", "foreign_keys": "0",
	} {
		if got := read("sqlite:"+path, pragma); got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
	if got := read("sqlite:"+path+"?_synchronous=EXTRA", "synchronous"); got != "3" {
		t.Errorf("synchronous of the URL: %s", got)
	}
	if got := read("sqlite:"+path+"?_timeout=5", "busy_timeout"); got != "5" {
		t.Errorf("busy_timeout of the URL: %s", got)
	}
	if got := read("sqlite:"+path+"?mode=ro", "journal_mode"); got != "wal" {
		t.Errorf("read-only: %s", got)
	}

	// A transaction acquires the write lock when it begins; a read-only transaction does not.
	pool, _, err := Open(t.Context(), "sqlite:"+path+"?_busy_timeout=0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	tx, err := pool.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := pool.Begin(); err == nil {
		second.Rollback()
		t.Error("two writers began at once")
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

func TestMissingFileIsNotCreated(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, rawURL := range []string{"sqlite:absent.db", "sqlite:absent.db?mode=rw"} {
		_, _, err := Open(t.Context(), rawURL, Options{MustExist: rawURL == "sqlite:absent.db"})
		if !errors.Is(err, rowfeed.NotInitialized) {
			t.Errorf("%s: %v", rawURL, err)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("files were made: %v (%v)", left, err)
	}
}

// TestMySQLURLSetsDriverParameters checks the parameters of the driver.
func TestMySQLURLSetsDriverParameters(t *testing.T) {
	for _, rawURL := range []string{
		"mysql://us%40er:p%2Fw@h:3307/shop?parseTime=true&wait_timeout=9", "mysql://root@/shop?socket=/run/x.sock",
	} {
		if _, err := parse(rawURL, Options{}); err != nil {
			t.Errorf("%s: %v", rawURL, err)
		}
	}
	config, err := mysqlConfig("mysql://us%40er:p%2Fw@[::1]/shop?parseTime=true")
	if err != nil {
		t.Fatal(err)
	}
	if config.User != "us@er" || config.Passwd != "p/w" || config.Addr != "[::1]:3306" || config.DBName != "shop" ||
		config.ParseTime || config.Params["wait_timeout"] != "60" {
		t.Errorf("config: %+v", config)
	}
	config, err = mysqlConfig("mariadb://root@/shop?socket=/run/x.sock&wait_timeout=9")
	if err != nil {
		t.Fatal(err)
	}
	if config.Net != "unix" || config.Addr != "/run/x.sock" || config.Params["wait_timeout"] != "9" {
		t.Errorf("config: %+v", config)
	}
}
