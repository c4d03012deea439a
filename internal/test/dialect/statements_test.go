package dialect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/dialect/sqlserver"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/golden"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// sharedFiles are the files of statements that are the same for every database, by the folders of their packages.
func sharedFiles(t *testing.T) map[string]*dialect.Statements {
	t.Helper()
	files := map[string]*dialect.Statements{}
	for _, pattern := range []string{"../../../admin/*.sql", "../../../cmd/sink/*/*.sql", "../../*/*.sql",
		"../../../dialect/*.sql"} {
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

// layouts are feeds of each layout on which the text of a statement can depend.
func layouts() []*dialect.Feed {
	id := dialect.Column{Name: "id", Stored: "id", Type: "bigint", Decl: "bigint", Kind: feedtype.Integer, Exact: true}
	kind := dialect.Column{Name: "kind", Stored: "key_kind", Type: "text", Decl: "text", Kind: feedtype.Text,
		Exact: true}
	one, two := []dialect.Column{id}, []dialect.Column{kind, id}
	ulids := func(position, shard string) *dialect.ULIDColumns {
		return &dialect.ULIDColumns{Position: dialect.Column{Name: position, Kind: feedtype.Binary},
			Shard: dialect.Column{Name: shard, Type: "bigint", Kind: feedtype.Integer}, Index: "place"}
	}
	all := []*dialect.Feed{
		{Name: "one_key_feed", Key: one, Capture: feedtype.CaptureTrigger},
		{Name: "composite_key_feed", Key: two, Capture: feedtype.CaptureApp},
		{Name: "column_capture_feed", Key: one, Capture: feedtype.CaptureColumn},
		{Name: "sharded_feed", Key: two, Capture: feedtype.CaptureTrigger, DataShards: 4},
		{Name: "own_shards_feed", Key: two, Capture: feedtype.CaptureTrigger, DataShards: 4, OwnShard: "tenant"},
		{Name: "own_shards_in_rows_feed", Key: two, Capture: feedtype.CaptureColumn, DataShards: 4, OwnShard: "tenant"},
		{Name: "outbox_feed", Key: two, Capture: feedtype.CaptureApp, ULIDs: ulids("ulid", "shard"), Outbox: true},
		{Name: "blocking_feed", Key: two, Capture: feedtype.CaptureNone, ULIDs: ulids("position", "tenant")},
	}
	for _, f := range all {
		f.Names, f.Source = dialect.Names{Prefix: "rowfeed_"}, feedtype.TableName{Name: "items_" + f.Name}
		f.Columns, f.Primary = []dialect.Column{id, kind}, true
	}
	return all
}

// render returns the text of a statement for each layout. A feed without ULIDs has no statement about ULIDs.
func render(t *testing.T, file *dialect.Statements, s *dialect.Syntax, name string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, f := range layouts() {
		st, err := file.RenderFor(s, f, name)
		if f.ULIDs == nil && err != nil && strings.Contains(err.Error(), "nil pointer") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		texts[f.Name] = st.String()
	}
	if len(texts) == 0 {
		t.Errorf("%q is for no layout", name)
	}
	return texts
}

// TestStatementsGetOnlyTheirArguments: arguments are found outside of literals, quoted names and casts. A statement
// gets a value for each of them, and no other.
func TestStatementsGetOnlyTheirArguments(t *testing.T) {
	file := dialect.NewStatements("-- name: one\n-- Its reason.\n" +
		"SELECT ':no', \"a:no\", x::bigint, :b FROM {{table \"t\"}} WHERE a = :a_a AND b = :b AND c = 'it''s :no'\n")
	st, err := file.Render(postgres.New().Syntax, dialect.Names{Schema: "s", Prefix: "p_"}, "one")
	if err != nil {
		t.Fatal(err)
	}
	b := dialect.NewBuilder(postgres.New().Syntax)
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
			dialect.NewBuilder(postgres.New().Syntax).Fill(st, args)
		}()
	}
}

// TestUnknownTemplateWordsFail: a word or a field that does not exist is an error.
func TestUnknownTemplateWordsFail(t *testing.T) {
	func() {
		defer func() {
			if recover() == nil {
				t.Error("an unknown word was accepted")
			}
		}()
		dialect.NewStatements("-- name: one\nSELECT {{nothing}}\n")
	}()
	for _, text := range []string{"{{.Nothing}}", `{{template "nothing"}}`, "{{table}}", "{{.ULIDs.Nothing.Name}}"} {
		file := dialect.NewStatements("-- name: one\nSELECT " + text + "\n")
		for _, f := range layouts() {
			if st, err := file.RenderFor(sqlite.New().Syntax, f, "one"); err == nil {
				t.Errorf("%s was rendered for %s: %s", text, f.Name, st)
			}
		}
	}
}

// TestStatementsOfEachDatabase: the complete SQL of each database, its own and the shared statements as it gets them,
// is that of the folder golden. A statement about a feed is there for each layout for which its text differs.
func TestStatementsOfEachDatabase(t *testing.T) {
	for _, d := range []*dialect.Dialect{sqlite.New(), postgres.New(), mysql.New(), sqlserver.New()} {
		texts := map[string]string{}
		for folder, file := range sharedFiles(t) {
			texts[folder+".sql"] = inFull(t, d, file)
		}
		own, err := filepath.Glob("../../../dialect/" + d.Name + "/*.sql")
		if err != nil || len(own) == 0 {
			t.Fatal(own, err)
		}
		for _, path := range own {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts["dialect."+filepath.Base(path)] = inFull(t, d, dialect.NewStatements(string(text)))
		}
		golden.Compare(t, "golden/"+d.Name, texts)
	}
}

// inFull returns all statements of a file.
func inFull(t *testing.T, d *dialect.Dialect, file *dialect.Statements) string {
	t.Helper()
	var all strings.Builder
	for _, name := range file.Names() {
		rendered := render(t, file, d.Syntax, name)
		var different []string
		for _, f := range layouts() {
			text, ok := rendered[f.Name]
			if text = strings.ReplaceAll(text, f.Name, "<feed>"); !ok || slices.Contains(different, text) {
				continue
			}
			of := ""
			if different = append(different, text); len(different) > 1 {
				of = " (" + f.Name + ")"
			}
			all.WriteString("-- name: " + name + of + "\n" + text + "\n\n")
		}
	}
	return all.String()
}

// plain spells a database that has nothing which only some databases have.
func plain() *dialect.Syntax {
	s := *sqlite.New().Syntax
	s.Quote = func(name string) string { return "[" + name + "]" }
	s.Now = "CLOCK()"
	s.Value = func(_ dialect.Column, ref string) string { return "READ(" + ref + ")" }
	s.Limit = func(rows string) string { return "FETCH NEXT " + rows }
	s.Skip = func(rows string) string { return "SKIP " + rows + " FETCH NEXT 1" }
	s.AtMost = func(rows string) string { return "AT MOST " + rows }
	s.InsertNew = func(table string, _, _, _ []string) string { return "INSERT NEW INTO " + table }
	return &s
}

// TestSharedStatementsAreStandard: no shared statement has syntax that one of the databases to come lacks.
func TestSharedStatementsAreStandard(t *testing.T) {
	lacking := map[string]*regexp.Regexp{
		"LIMIT":                             regexp.MustCompile(`(?i)\bLIMIT\b`),
		"RETURNING":                         regexp.MustCompile(`(?i)\bRETURNING\b`),
		"ON CONFLICT":                       regexp.MustCompile(`(?i)\bON CONFLICT\b`),
		"row values":                        regexp.MustCompile(`\([^()]*,[^()]*\)\s*(=|<|>|IN\b)`),
		"a name of a database's own quotes": regexp.MustCompile("[\"`]"),
		"a cast of PostgreSQL":              regexp.MustCompile(`::`),
		"LATERAL":                           regexp.MustCompile(`(?i)\bLATERAL\b`),
		"substr":                            regexp.MustCompile(`(?i)\bsubstr\(`),
		"a literal beyond int":              regexp.MustCompile(`\b\d{10,}\b`),
		"ROUND with one argument":           regexp.MustCompile(`(?i)\bROUND\((?:[^,()]|\([^()]*\))*\)`),
		"the reserved name view":            regexp.MustCompile(`[ (,.]view\b`),
	}
	argument := regexp.MustCompile(`([^:]):\w+`)
	for folder, file := range sharedFiles(t) {
		for _, name := range file.Names() {
			for layout, text := range render(t, file, plain(), name) {
				complain := func(what string) { t.Errorf("%s, %s (%s) has %s:\n%s", folder, name, layout, what, text) }
				// A scan of records is ordered: see dialect.Syntax.Scan.
				text = strings.ReplaceAll(text, ":scan ", "FROM scanned ORDER BY number ")
				text = argument.ReplaceAllString(text, "$1?")
				for what, pattern := range lacking {
					if pattern.MatchString(text) {
						complain(what)
					}
				}
				if strings.Count(text, "FETCH NEXT") > strings.Count(text, "ORDER BY") {
					complain("{{limit}} or {{skip}} without ORDER BY")
				}
				for _, column := range unnamedColumns(text) {
					complain("a derived table with the unnamed column " + column)
				}
			}
		}
	}
}

// unnamedColumns returns the columns of derived tables that have no name.
func unnamedColumns(text string) (unnamed []string) {
	text = strings.Join(strings.Fields(text), " ")
	named := regexp.MustCompile(`^:?[\w.\[\]]+$| AS \w+$|^(\w+\.)?\*$`)
	for _, begin := range regexp.MustCompile(`\b(FROM|JOIN) \(SELECT (DISTINCT )?`).FindAllStringIndex(text, -1) {
		depth, from := 0, begin[1]
		for i := from; i < len(text) && depth >= 0; i++ {
			ends := depth == 0 && strings.HasPrefix(text[i:], " FROM ")
			switch {
			case text[i] == '(':
				depth++
			case text[i] == ')':
				depth--
			case depth == 0 && text[i] == ',' || ends:
				if column := strings.TrimSpace(text[from:i]); !named.MatchString(column) || column == "1" {
					unnamed = append(unnamed, column)
				}
				from = i + 1
			}
			if ends {
				break
			}
		}
	}
	return unnamed
}

// TestUnnamedColumnsAreFound checks the check.
func TestUnnamedColumnsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"SELECT max(a) FROM (SELECT a, b.c, max(d, e) AS f FROM t) x":                     0,
		"SELECT 1 FROM t JOIN (SELECT DISTINCT [a] FROM t) x ON EXISTS (SELECT 1 FROM u)": 0,
		"SELECT count(*) FROM (SELECT 1 FROM t) x":                                        1,
		"SELECT 1 FROM (SELECT a, max(b) FROM (SELECT c + 1, d FROM t) x) y":              2,
	} {
		if got := unnamedColumns(text); len(got) != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// TestSharedStatementsFitTheSchema: SQLite prepares each shared statement that is whole. So its tables and columns
// exist.
func TestSharedStatementsFitTheSchema(t *testing.T) {
	pool, d := testdb.SQLite.New(t).Admin(), sqlite.New()
	run := func(statement string) {
		t.Helper()
		if _, err := pool.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range d.Migrations(dialect.Names{Prefix: "rowfeed_"}) {
		for _, statement := range m.Up {
			run(statement)
		}
	}
	for _, f := range layouts() {
		run("CREATE TABLE " + f.Source.Name + " (id bigint NOT NULL, kind text NOT NULL, position blob, " +
			"tenant bigint, feed_sync_id bigint, shard int, ulid blob, " +
			"PRIMARY KEY (" + strings.Join(dialect.KeyRefs(d.Syntax, f, ""), ", ") + "))")
		table, err := d.Describe(t.Context(), dialect.On(pool), f.Source)
		if err != nil {
			t.Fatal(err)
		}
		if f.ULIDs != nil && !f.Outbox {
			continue // it has no tables of its own
		}
		steps, err := d.FeedUp(f, table)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			run(step.SQL)
		}
	}
	begins := regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE)\b`)
	// Go code puts text in place of some arguments.
	text := regexp.MustCompile(`[\w\])"] :\w|FROM \(:|VALUES \(:values`)
	keyword := regexp.MustCompile(`\b(SELECT|WHERE|AND|OR|LIMIT|OFFSET|THEN|ELSE|WHEN|ON|LIKE) :\w`)
	for folder, file := range sharedFiles(t) {
		prepared := 0
		for _, name := range file.Names() {
			rendered := render(t, file, d.Syntax, name)
			for _, f := range layouts() {
				statement := rendered[f.Name]
				if !begins.MatchString(statement) || text.MatchString(keyword.ReplaceAllString(statement, "")) {
					continue
				}
				st, err := pool.PrepareContext(t.Context(), statement)
				if err != nil && lacks(f, err) {
					continue
				}
				if err != nil {
					t.Errorf("%s, %s (%s): %v:\n%s", folder, name, f.Name, err, statement)
					continue
				}
				st.Close()
				prepared++
			}
		}
		if prepared == 0 && folder != "sqlmirror" { // whose tables are the user's
			t.Errorf("%s has no whole statement", folder)
		}
	}
}

// lacks tells whether a statement failed because this layout does not have one of the tables that feeds can have.
func lacks(f *dialect.Feed, err error) bool {
	_, missing, _ := strings.Cut(err.Error(), "no such table: ")
	missing, _, _ = strings.Cut(missing, " ")
	named := func(t feedtype.TableName) bool { return t.Name == missing }
	return slices.ContainsFunc([]feedtype.TableName{f.Changes(), f.Positions(), f.Records(), f.Placed()}, named) &&
		!slices.ContainsFunc(f.Tables(), named)
}
