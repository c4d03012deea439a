package sqlserver_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
)

// condition is an argument in whose place Go code puts a condition.
var condition = regexp.MustCompile(`(WHERE|AND|NOT) (\(?):(any|claims|condition|has_position|has_row|in_shard|` +
	`known|named|outdated|own|same|unchanged|which)\b`)

// spelled are arguments with their neighbours, and what Go code makes of them.
var spelled = strings.NewReplacer("<feed>", "kv", ":scan ORDER BY", "FROM x ORDER BY",
	"SET :key WHERE", "SET k = 1 WHERE")

// codeText is what Go code puts in place of other arguments, as text. All others are parameters.
var codeText = dialect.Args{"greatest": dialect.SQL("SELECT 1 AS one"), "number": dialect.SQL("0"),
	"rows": dialect.SQL("(1, 2)"), "scan": dialect.SQL("FROM x ORDER BY i"), "scans": dialect.SQL("SELECT 1 AS one"),
	"sweep": dialect.SQL("[y]"), "unlocked": dialect.SQL(d.SkipLocked),
	"hint": dialect.SQL(d.SkipLockedHint)}

// whole is the beginning of a statement. All others are parts of one.
var whole = regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|MERGE|WITH)\b`)

// frames are statements with a part of one in them.
var frames = []string{"SELECT 1 AS one FROM t WHERE :part", "SELECT :part AS one FROM t",
	"SELECT 1 AS one :part", "SELECT 1 AS one FROM t WHERE 1 = 1 :part", "INSERT INTO t VALUES :part",
	"UPDATE t SET :part"}

// TestSharedStatementsParse: every shared statement, as SQL Server gets it for each layout, is T-SQL as far as teesql
// knows it. A part of a statement is that in a statement around it.
func TestSharedStatementsParse(t *testing.T) {
	paths, err := filepath.Glob("../golden/sqlserver/[a-z]*.sql")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range paths {
		if strings.Contains(filepath.Base(path), "dialect.") && filepath.Base(path) != "dialect.sql" {
			continue // TestStatementsParse has what the dialect itself sends
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range strings.Split("\n"+string(text), "\n-- name: ")[1:] {
			n++
			name, text, _ := strings.Cut(spelled.Replace(each), "\n")
			text = condition.ReplaceAllString(text, "$1 ${2}1 = 1")
			st, err := dialect.NewStatements("-- name: x\n"+text).Render(d.Syntax, names, "x")
			if err != nil {
				t.Fatal(err)
			}
			statement := filled(st)
			if !whole.MatchString(statement) {
				i := slices.IndexFunc(frames, func(frame string) bool {
					return parsed(t, strings.Replace(frame, ":part", statement, 1)) == nil
				})
				if i < 0 {
					t.Errorf("%s, %s is no part of a statement:\n%s", filepath.Base(path), name, statement)
				}
				continue
			}
			parse(t, statement)
		}
	}
	if n < 300 {
		t.Errorf("only %d shared statements were parsed", n)
	}
}

// TestUpsertParses: the statement with which a mirror writes is T-SQL, as far as teesql knows it.
func TestUpsertParses(t *testing.T) {
	for _, columns := range [][]string{{"[k1]", "[v]", "[k2]"}, {"[k1]", "[k2]"}} {
		row := []string{"@p1", "CAST(@p2 AS varbinary(max))", "@p3"}[:len(columns)]
		parse(t, d.Upsert("[s].[t]", columns, [][]string{row, row}, []string{"[k1]", "[k2]"}))
	}
}
