package dialect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/internal/test/golden"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// sharedFiles are the files of statements that are the same for every database, by the folders of their packages.
func sharedFiles(t *testing.T) map[string]*dialect.Statements {
	t.Helper()
	files := map[string]*dialect.Statements{}
	for _, pattern := range []string{"../../../admin/*.sql", "../../*/*.sql"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Base(filepath.Dir(path))] = dialect.NewStatements(string(text))
		}
	}
	if len(files) == 0 {
		t.Fatal("there is no file of statements")
	}
	return files
}

func render(t *testing.T, file *dialect.Statements, s dialect.Spelling, name string) string {
	t.Helper()
	st, err := file.Render(s, dialect.Names{Prefix: "rowfeed_"}, name)
	if err != nil {
		t.Fatal(err)
	}
	return st.String()
}

// TestArgumentsOfStatements: arguments are found outside of literals, quoted names and casts. A statement gets a value
// for each of them, and no other.
func TestArgumentsOfStatements(t *testing.T) {
	file := dialect.NewStatements("-- name: one\n-- Its reason.\n" +
		"SELECT ':no', \"a:no\", x::bigint, :b FROM {{table \"t\"}} WHERE a = :a_a AND b = :b AND c = 'it''s :no'\n")
	st, err := file.Render(postgres.New(), dialect.Names{Schema: "s", Prefix: "p_"}, "one")
	if err != nil {
		t.Fatal(err)
	}
	b := dialect.NewBuilder(postgres.New())
	got := b.Fill(st, dialect.Args{"a_a": 1, "b": 2})
	want := `SELECT ':no', "a:no", x::bigint, $1 FROM "s"."p_t" WHERE a = $2 AND b = $3 AND c = 'it''s :no'`
	if got != want || fmt.Sprint(b.Args()) != "[2 1 2]" {
		t.Errorf("%s, %v", got, b.Args())
	}
	for _, args := range []dialect.Args{nil, {"a_a": 1}, {"a_a": 1, "c": 2}, {"a_a": 1, "b": 2, "c": 3}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v were accepted", args)
				}
			}()
			dialect.NewBuilder(postgres.New()).Fill(st, args)
		}()
	}
}

// TestSharedStatementsOfEachDatabase: the shared statements, as each database gets them, are those of the files in
// testdata/statements.
func TestSharedStatementsOfEachDatabase(t *testing.T) {
	texts := map[string]string{}
	for _, d := range []dialect.Dialect{sqlite.New(), postgres.New(), mysql.New()} {
		for folder, file := range sharedFiles(t) {
			var all strings.Builder
			for _, name := range file.Names() {
				all.WriteString("-- name: " + name + "\n" + render(t, file, d, name) + "\n\n")
			}
			texts[filepath.Join(d.Name(), folder+".sql")] = all.String()
		}
	}
	golden.Compare(t, "testdata/statements", texts)
}

// plain spells a database that has nothing which only some databases have.
type plain struct{ dialect.Spelling }

func (plain) Quote(name string) string { return "[" + name + "]" }
func (plain) Now() string              { return "CLOCK()" }
func (plain) Limit(rows string) string { return "FETCH NEXT " + rows }

// TestSharedStatementsAreStandard: no shared statement has syntax that one of the databases to come lacks.
func TestSharedStatementsAreStandard(t *testing.T) {
	lacking := map[string]*regexp.Regexp{
		"LIMIT":                             regexp.MustCompile(`(?i)\bLIMIT\b`),
		"RETURNING":                         regexp.MustCompile(`(?i)\bRETURNING\b`),
		"ON CONFLICT":                       regexp.MustCompile(`(?i)\bON CONFLICT\b`),
		"row values":                        regexp.MustCompile(`\([^()]*,[^()]*\)\s*(=|<|>|IN\b)`),
		"a name of a database's own quotes": regexp.MustCompile("[\"`]"),
	}
	for folder, file := range sharedFiles(t) {
		for _, name := range file.Names() {
			text := render(t, file, plain{sqlite.New()}, name)
			for what, pattern := range lacking {
				if pattern.MatchString(text) {
					t.Errorf("%s, %s has %s:\n%s", folder, name, what, text)
				}
			}
		}
	}
}

// TestSharedStatementsFitTheSchema: SQLite prepares each shared statement that is whole. So its tables and columns
// exist.
func TestSharedStatementsFitTheSchema(t *testing.T) {
	pool, d := testdb.SQLite.New(t).Admin(), sqlite.New()
	for _, m := range d.Migrations(dialect.Names{Prefix: "rowfeed_"}) {
		for _, statement := range m.Up {
			if _, err := pool.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	begins := regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE)\b`)
	goesOn := regexp.MustCompile(`\b(AND|IN)$`) // Go code adds a list
	for folder, file := range sharedFiles(t) {
		prepared := 0
		for _, name := range file.Names() {
			text := render(t, file, d, name)
			if !begins.MatchString(text) || goesOn.MatchString(text) {
				continue
			}
			st, err := pool.PrepareContext(t.Context(), text)
			if err != nil {
				t.Errorf("%s, %s: %v:\n%s", folder, name, err, text)
				continue
			}
			st.Close()
			prepared++
		}
		if prepared == 0 {
			t.Errorf("%s has no whole statement", folder)
		}
	}
}
