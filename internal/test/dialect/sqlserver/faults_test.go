package sqlserver_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
)

// everything calls fn for each part of each statement that is sent or printed, and of each shared statement. Parts end
// with a semicolon.
func everything(t *testing.T, fn func(where, statement string)) {
	t.Helper()
	each := func(where, text string) {
		for _, part := range strings.Split(text, ";") {
			fn(where, strings.Join(strings.Fields(part), " "))
		}
	}
	paths, err := filepath.Glob("../../../../internal/*/*.sql")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, l := range layouts() {
		for _, s := range sent(t, l) {
			each(l.name, s)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file := dialect.NewStatements(string(text))
			for _, name := range file.Names() {
				st, err := file.RenderFor(d.Syntax, l.feed, name)
				if err == nil { // a statement about ULIDs is for feeds with ULIDs only
					each(l.name+", "+path+", "+name, st.String())
				}
			}
		}
	}
}

// TestNumbersAreDrawnWithoutLimit: the server refuses TOP, OFFSET and ROWCOUNT where a default draws a number (error
// 11740).
func TestNumbersAreDrawnWithoutLimit(t *testing.T) {
	draws := regexp.MustCompile(`INSERT (TOP \S+ )?INTO \S*rowfeed_(changes|outbox)_kv\]`)
	limits := regexp.MustCompile(`\b(TOP|OFFSET)\b`)
	found := 0
	everything(t, func(where, statement string) {
		if !draws.MatchString(statement) {
			return
		}
		found++
		if limits.MatchString(statement) {
			t.Errorf("%s has a limit:\n%s", where, statement)
		}
	})
	if found < 20 {
		t.Errorf("only %d statements draw numbers", found)
	}
}

// TestLimitsAreOffsets: T-SQL has no LIMIT.
func TestLimitsAreOffsets(t *testing.T) {
	everything(t, func(where, statement string) {
		if regexp.MustCompile(`\bLIMIT\b`).MatchString(statement) {
			t.Errorf("%s:\n%s", where, statement)
		}
	})
}

// TestTableLocksOpenTheTable: a condition that is never true is found when the statement is compiled. The table is not
// opened then, and a hint on it locks nothing.
func TestTableLocksOpenTheTable(t *testing.T) {
	locks := 0
	everything(t, func(where, statement string) {
		if !strings.Contains(statement, "TABLOCK") {
			return
		}
		locks++
		if strings.Contains(statement, "1 = 0") || strings.Contains(statement, "TOP (0)") {
			t.Errorf("%s locks nothing:\n%s", where, statement)
		}
	})
	if locks == 0 {
		t.Error("no statement locks a table")
	}
}

// TestPassedRowsAreRead: a writer of a row locks no entry of an index that contains none of the columns that it writes.
// So what passes locked rows also reads a column that its index does not contain.
func TestPassedRowsAreRead(t *testing.T) {
	passing := 0
	everything(t, func(where, statement string) {
		if !strings.Contains(statement, "READPAST") {
			return
		}
		passing++
		for _, need := range []string{"READCOMMITTEDLOCK", "DATALENGTH(t.shard)"} {
			if !strings.Contains(statement, need) {
				t.Errorf("%s lacks %s:\n%s", where, need, statement)
			}
		}
	})
	if passing == 0 {
		t.Error("no statement passes locked rows")
	}
}

// TestRangeLocksAreSought: range locks that are taken along a join go by keys. A scan would lock the whole table.
func TestRangeLocksAreSought(t *testing.T) {
	everything(t, func(where, statement string) {
		const lock = "SERIALIZABLE, ROWLOCK"
		if strings.Count(statement, lock) != strings.Count(statement, lock+", FORCESEEK") {
			t.Errorf("%s:\n%s", where, statement)
		}
	})
}

// TestAnswersOfLocksAreLookedAt: sp_getapplock answers with a code. It answers nothing if it fails itself.
func TestAnswersOfLocksAreLookedAt(t *testing.T) {
	all := d.Migrations(names)[0].Up
	for _, f := range files(t) {
		if f.name == "schema.sql" {
			all = append(all, f.source("lock_schema"))
		}
	}
	locks := 0
	for _, s := range all {
		if strings.Contains(s, "sp_getapplock") && !strings.HasPrefix(s, "--") {
			locks++
			if !strings.Contains(s, "COALESCE(@got, -999) < 0") {
				t.Errorf("no answer is an answer:\n%s", s)
			}
		}
	}
	if locks == 0 {
		t.Error("no statement locks a name")
	}
}

// TestTriggersAreIndependentOfTheirWriter: a writer's NOCOUNT and ROWCOUNT do not count in a trigger.
func TestTriggersAreIndependentOfTheirWriter(t *testing.T) {
	triggers := 0
	for _, l := range layouts() {
		for _, s := range added(t, l) {
			if !strings.Contains(s.SQL, "TRIGGER") {
				continue
			}
			triggers++
			if !strings.Contains(s.SQL, "\nBEGIN\n  SET NOCOUNT ON;\n  SET ROWCOUNT 0;\n") {
				t.Errorf("%s:\n%s", l.name, s.SQL)
			}
		}
	}
	if triggers < 3 {
		t.Errorf("only %d triggers", triggers)
	}
}

// TestPlacesAreRaisedAfterTheInsert: the INSERT waits for a mover of the same key. Only an UPDATE behind it raises the
// place that this mover has left.
func TestPlacesAreRaisedAfterTheInsert(t *testing.T) {
	for _, l := range layouts() {
		if !l.feed.Outbox {
			continue
		}
		for _, s := range call(t, l.feed) {
			if insert := strings.Index(s, "INSERT INTO [dbo].[rowfeed_feed_kv]"); strings.Contains(s, "@moved") &&
				(insert < 0 || strings.Index(s, "UPDATE g") < insert) {
				t.Errorf("%s:\n%s", l.name, s)
			}
		}
	}
}

// TestWritersOfAnUnseenTableAreNotTold: without an answer about the table nobody knows who writes to it.
func TestWritersOfAnUnseenTableAreNotTold(t *testing.T) {
	pool := sql.OpenDB(&recorder{})
	defer pool.Close()
	open, told, err := d.Gaps.Writers(t.Context(), dialect.On(pool), layouts()[0].feed)
	if open != nil || told || err != nil {
		t.Errorf("%v, %t, %v", open, told, err)
	}
}
