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

// TestStatementsThatSkipLockedRowsReadTheRow: a writer of a row locks no entry of an index that contains none of the
// columns that it writes. So what passes locked rows also reads a column that its index does not contain.
func TestStatementsThatSkipLockedRowsReadTheRow(t *testing.T) {
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

// TestWritersOfAnUnseenTableAreNotTold: if the table is not visible, its writers are unknown.
func TestWritersOfAnUnseenTableAreNotTold(t *testing.T) {
	pool := sql.OpenDB(&recorder{})
	defer pool.Close()
	open, told, err := d.Gaps.Writers(t.Context(), dialect.On(pool), layouts()[0].feed)
	if open != nil || told || err != nil {
		t.Errorf("%v, %t, %v", open, told, err)
	}
}

// TestDatabaseIsFoundByName: on Azure SQL Database, DB_ID() can differ from the number in sys.databases.
func TestDatabaseIsFoundByName(t *testing.T) {
	found := 0
	everything(t, func(where, statement string) {
		if strings.Contains(statement, "FROM sys.databases AS d WHERE ") {
			found++
			if !strings.Contains(statement, "d.name = DB_NAME()") {
				t.Errorf("%s:\n%s", where, statement)
			}
		}
	})
	if found == 0 {
		t.Error("no statement reads the options of the database")
	}
}

// TestIdentityIsReadIfItCanBe: Azure SQL Database lacks the view. A batch fails only if a statement that names the view
// runs.
func TestIdentityIsReadIfItCanBe(t *testing.T) {
	const view = "sys.database_recovery_status"
	const first = "IF OBJECT_ID(N'" + view + "') IS NOT NULL SELECT"
	batches := 0
	everything(t, func(where, statement string) {
		if strings.Contains(statement, view) {
			batches++
			if !strings.HasPrefix(statement, first) {
				t.Errorf("%s:\n%s", where, statement)
			}
		}
	})
	if batches < 4 {
		t.Errorf("only %d batches read the identity", batches)
	}
}

// TestWhatWaitsIsReadInVersions: without row versions, a scan of changes or records misses some. So each batch that
// locks a feed or a shard before such a scan refuses a database that has lost them, also with UnsafeDurability.
func TestWhatWaitsIsReadInVersions(t *testing.T) {
	for _, l := range layouts() {
		scans := 0
		for _, s := range sent(t, l) {
			if !strings.Contains(s, "EXEC [dbo].[rowfeed_turn]") || strings.Contains(s, "[rowfeed_lock_kv]") {
				continue // a writer scans nothing
			}
			scans++
			if at := strings.Index(s, "THROW 77111"); at < 0 || at > strings.Index(s, "EXEC [dbo].[rowfeed_turn]") {
				t.Errorf("%s:\n%s", l.name, s)
			}
		}
		if scans == 0 {
			t.Errorf("%s: no statement locks the feed or a shard", l.name)
		}
	}
}

// TestShardIsReadAsCommitted: a transaction in SNAPSHOT does not see a shard's row that was made since. It would insert
// the row again, and fail with a duplicate key, or update no row and give ULIDs again.
func TestShardIsReadAsCommitted(t *testing.T) {
	procedures := 0
	for _, l := range layouts() {
		for _, s := range added(t, l) {
			if !strings.Contains(s.SQL, "PROCEDURE [dbo].[rowfeed_lock_kv]") {
				continue
			}
			procedures++
			if !strings.Contains(s.SQL, "AS s WITH (READCOMMITTEDLOCK, UPDLOCK, ROWLOCK)") ||
				!strings.Contains(s.SQL, "IF @@ROWCOUNT <> 1\n    THROW 77105") {
				t.Errorf("%s:\n%s", l.name, s.SQL)
			}
		}
	}
	if procedures == 0 {
		t.Error("there is no procedure")
	}
}

// TestReadersInSQLAreRefused: read_feed refuses what readers by rowfeed are refused. It looks up what was purged behind
// each page, and whether the cursor is ahead before it moves records.
func TestReadersInSQLAreRefused(t *testing.T) {
	order := regexp.MustCompile(`(?s)SET IMPLICIT_TRANSACTIONS OFF;\n  SET ROWCOUNT 0;.*@@TRANCOUNT > 0.*` +
		`THROW 77111.*THROW 77113.*INSERT INTO #read.*THROW 77112.*RETURN;.*THROW 77115.*` +
		`EXEC \[dbo\]\.\[rowfeed_turn\].*THROW 77112.*THROW 77114.*INSERT INTO @taken.*THROW 77103.*` +
		`DELETE c FROM @taken.*INSERT INTO #read.*COMMIT`)
	procedures := 0
	for _, l := range layouts() {
		for _, s := range added(t, l) {
			if strings.Contains(s.SQL, "PROCEDURE [changefeed].[read_feed:") {
				procedures++
				if !order.MatchString(s.SQL) {
					t.Errorf("%s:\n%s", l.name, s.SQL)
				}
			}
		}
	}
	if procedures == 0 {
		t.Error("there is no procedure")
	}
}
