// Package sqlserver_test has tests of package dialect/sqlserver without a server: its SQL is complete, and it can be
// parsed. Nothing here knows what a server does with it.
package sqlserver_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqlc-dev/teesql/parser"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/golden"
)

// file is one of the dialect's files of statements.
type file struct {
	name  string
	text  string
	all   *dialect.Statements
	names []string // in the order of the file
}

func files(t *testing.T) (all []file) {
	t.Helper()
	paths, err := filepath.Glob("../../../../dialect/sqlserver/*.sql")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no files of statements", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := file{name: filepath.Base(path), text: string(text), all: dialect.NewStatements(string(text))}
		for _, m := range regexp.MustCompile(`(?m)^-- name: (.*)$`).FindAllStringSubmatch(f.text, -1) {
			f.names = append(f.names, m[1])
		}
		all = append(all, f)
	}
	return all
}

// source returns the text of a statement in its file.
func (f file) source(name string) string {
	_, after, _ := strings.Cut(f.text, "-- name: "+name+"\n")
	text, _, _ := strings.Cut(after, "\n-- name: ")
	return text
}

// section is a part of a golden file.
func section(title, script string) string { return "-- " + title + "\n" + script + "\n\n" }

// TestScriptsOfEachLayout: the scripts that make and remove each kind of feed, and rowfeed's own tables, are those
// of the folder golden.
func TestScriptsOfEachLayout(t *testing.T) {
	texts := map[string]string{}
	for _, m := range d.Migrations(names) {
		texts["database.sql"] += section("migrate up", script(steps(m.Up))) +
			section("migrate down", script(steps(m.Down)))
	}
	for _, l := range layouts() {
		texts[l.name+".sql"] = section("feed add", script(added(t, l))) + section("feed drop", script(dropped(l)))
	}
	golden.Compare(t, "golden", texts)
}

func steps(statements []string) (all []dialect.Step) {
	for _, s := range statements {
		all = append(all, dialect.Step{SQL: s})
	}
	return all
}

// script is what --print shows of steps, without comments.
func script(steps []dialect.Step) string {
	all := make([]string, len(steps))
	for i, s := range steps {
		all[i] = d.Terminate(s.SQL)
	}
	return strings.Join(all, "\n")
}

// added is the script that adds a feed.
func added(t *testing.T, l layout) []dialect.Step {
	t.Helper()
	steps, err := rowfeed.PrintFeed(d, nil, l.spec)
	if err != nil {
		t.Fatalf("%s: %v", l.name, err)
	}
	return steps
}

// dropped are the statements that remove a feed's objects.
func dropped(l layout) []dialect.Step {
	if l.feed.ULIDs != nil && !l.feed.Outbox {
		return d.Routines.ULIDDown(l.feed)
	}
	return d.FeedDown(l.feed, &dialect.Table{Name: l.feed.Source})
}

// gaps are what teesql does not know of T-SQL, and what it is given instead.
var gaps = []struct {
	part    *regexp.Regexp
	instead string
	reason  string
}{
	{regexp.MustCompile(` COLLATE Latin1_General_100_BIN2 AS varchar\(8000\)\)`), " AS varchar(8000))",
		"it does not know COLLATE within CAST"},
	{regexp.MustCompile(`^(MERGE INTO \S+) WITH \(HOLDLOCK\)`), "$1", "it does not know a hint on the target of MERGE"},
	{regexp.MustCompile(`(?s)^(MERGE .* USING )(\(VALUES .*\)) AS s (\([^()]+\))`),
		"${1}(SELECT * FROM $2 AS s $3) AS s $3", "it does not know VALUES as the source of MERGE"},
	{regexp.MustCompile(`\bAND (\(SELECT 1 FROM [^()]+\)) IS NULL`), "AND NOT EXISTS $1",
		"record_vanished: it does not know IS NULL after a subquery"},
}

// parsed is teesql's error for a statement.
func parsed(t *testing.T, statement string) error {
	for _, gap := range gaps {
		statement = gap.part.ReplaceAllString(statement, gap.instead)
	}
	_, err := parser.Parse(t.Context(), strings.NewReader(statement))
	return err
}

func parse(t *testing.T, statement string) {
	t.Helper()
	if err := parsed(t, statement); err != nil {
		t.Errorf("%v:\n%s", err, statement)
	}
}

// filled is a statement with some value for each argument: a name, a type, or a parameter.
func filled(st dialect.Statement) string {
	args := dialect.Args{}
	for _, name := range st.Args() {
		switch name {
		case "table", "constraint", "column":
			args[name] = dialect.SQL("[x]")
		case "type":
			args[name] = dialect.SQL("nvarchar(50) COLLATE Latin1_General_100_BIN2")
		case "session":
			args[name] = dialect.SQL("52")
		default:
			args[name] = 1
			if text, ok := codeText[name]; ok {
				args[name] = text
			}
		}
	}
	return dialect.NewBuilder(d.Syntax).Fill(st, args)
}

// TestStatementsParse: every statement that is sent or printed is T-SQL, as far as teesql knows it.
func TestStatementsParse(t *testing.T) {
	for _, m := range d.Migrations(names) {
		for _, s := range append(m.Up, m.Down...) {
			parse(t, s)
		}
	}
	for _, f := range files(t) {
		for _, name := range f.names {
			if _, ok := unsent[name]; ok {
				st, err := f.all.RenderFor(d.Syntax, layouts()[0].feed, name)
				if err != nil {
					t.Fatal(err)
				}
				parse(t, filled(st))
			}
		}
	}
	for _, l := range layouts() {
		t.Run(l.name, func(t *testing.T) {
			for _, s := range sent(t, l) {
				parse(t, s)
			}
		})
	}
}

// sent are the statements of a feed that are sent or printed.
func sent(t *testing.T, l layout) []string {
	all := call(t, l.feed)
	table := &dialect.Table{Name: l.feed.Source}
	for _, s := range append(added(t, l), dropped(l)...) {
		all = append(all, strings.Split(s.SQL, "\nGO\n")...)
	}
	if l.feed.ULIDs == nil || l.feed.Outbox {
		up, err := d.FeedUp(l.feed, table)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range up {
			all = append(all, s.SQL)
		}
	}
	return all
}

// unsent are statements that no test can make the dialect send without a server's answers.
var unsent = map[string]string{
	"drop_key":          "Repair, if a key was declared again",
	"declare_key":       "Repair, if a key was declared again",
	"add_position_key":  "Repair, if a key was declared again",
	"add_place_key":     "Repair, if a key was declared again",
	"drop_bucket_index": "BucketIndex, if the number of data shards was changed",
	"lock_schema":       "WithSchemaLock, if the database keeps row versions",
	"end_session":       "EndHolder, if the holder is still there",
	"columns":           "Describe, if there is the table",
	"unique_indexes":    "Describe, if there is the table",
	"update_triggers":   "Describe, if there is the table",
	"indexes":           "Describe, if there is the table",
	"trigger_state":     "Verify, if there are the tables",
	"original_state":    "Verify, if there are the tables",
	"login":             "Blockers, if the login is not told",
}

// TestEveryStatementIsFilled: each statement of the files is sent or printed for some kind of feed, with a value for
// each of its arguments.
func TestEveryStatementIsFilled(t *testing.T) {
	point := d.Savepoint("rowfeed")
	all := []string{point.Set, point.Back, point.Release}
	for _, m := range d.Migrations(names) {
		all = append(append(all, m.Up...), m.Down...)
	}
	byLayout := map[string]string{}
	for _, l := range layouts() {
		statements := sent(t, l)
		for _, s := range statements {
			st, err := dialect.NewStatements("-- name: x\n"+s+"\n").Render(d.Syntax, names, "x")
			if err != nil || len(st.Args()) > 0 {
				t.Errorf("%s: %q have no value (%v):\n%s", l.name, st.Args(), err, s)
			}
		}
		byLayout[l.name] = strings.Join(append(statements, all...), "\n\n")
	}
	argument := regexp.MustCompile(`:[a-z_]+`)
	for _, f := range files(t) {
		for _, name := range f.names {
			used := slices.ContainsFunc(layouts(), func(l layout) bool {
				if l.feed.ULIDs == nil && strings.Contains(f.source(name), ".ULIDs") {
					return false
				}
				st, err := f.all.RenderFor(d.Syntax, l.feed, name)
				if err != nil {
					t.Fatal(err)
				}
				longest := ""
				for _, part := range argument.Split(st.String(), -1) {
					if len(part) > len(longest) {
						longest = part
					}
				}
				return strings.Contains(byLayout[l.name], longest)
			})
			if _, known := unsent[name]; !used && !known {
				t.Errorf("%s: nothing sends or prints the statement %s", f.name, name)
			}
		}
	}
}

// errNumber is an error of a driver.
type errNumber int32

func (errNumber) Error() string           { return "an error of the server" }
func (n errNumber) SQLErrorNumber() int32 { return int32(n) }

func TestErrorNumbersHaveClasses(t *testing.T) {
	for n, want := range map[int32]dialect.Class{1205: dialect.ClassRetry, 3960: dialect.ClassRetry,
		1222: dialect.ClassLockTimeout, 208: dialect.ClassUndefined, 229: dialect.ClassPermission,
		2627: dialect.ClassDuplicate, 8115: dialect.ClassInvalid, 1105: dialect.ClassFull, 3906: dialect.ClassReadOnly,
		40613: dialect.ClassConnection, 596: dialect.ClassConnection, 3971: dialect.ClassConnection,
		3930: dialect.ClassRetry, 1088: dialect.ClassUndefined, 15517: dialect.ClassPermission,
		3958: dialect.ClassFull, 99999: dialect.ClassOther} {
		if got := d.Classify(errNumber(n)); got != want {
			t.Errorf("%d: class %d, want %d", n, got, want)
		}
	}
}

func TestTextsAreQuotedAsLiterals(t *testing.T) {
	for text, want := range map[string]string{
		"it's":       "N'it''s'",
		"a\\\nGO\nb": "(N'a\\' + NCHAR(10) + N'GO' + NCHAR(10) + N'b')",
		"a $(b) c\r": "(N'a $' + N'(b) c' + NCHAR(13) + N'')",
	} {
		if got := d.Literal(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := d.Quote("a]b"); got != "[a]]b]" {
		t.Error(got)
	}
}

// TestQuotedNamesHaveNoArguments: an argument in a quoted name is none.
func TestQuotedNamesHaveNoArguments(t *testing.T) {
	file := dialect.NewStatements("-- name: x\nSELECT [a:no], [it's]]:no], x.[:no] FROM t WHERE a[:b] = :c")
	st, err := file.Render(d.Syntax, names, "x")
	if err != nil || !slices.Equal(st.Args(), []string{"b", "c"}) {
		t.Errorf("%q, %v", st.Args(), err)
	}
	if !dialect.SameText("SELECT [a  -- b]", "SELECT   [a  -- b]") ||
		dialect.SameText("SELECT [a  b]", "SELECT [a b]") {
		t.Error("names in brackets are compared as other text")
	}
}
