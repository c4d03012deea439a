package sqlserver_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/docs"
)

// verbs are where the suite puts values into a text of the fixture.
var verbs = strings.NewReplacer("%d", "1", "%[1]d", "1", "%[2]d", "1", "%s", "0x00", "%%", "%")

// TestExamplesOfOriginalParse: the SQL for mssql-changefeed that the suite runs is T-SQL, as far as teesql knows it.
func TestExamplesOfOriginalParse(t *testing.T) {
	text, err := os.ReadFile("../../fixture/sqlserver/original.sql")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile(`(?m)^-- name: .*\n`).Split(string(text), -1)[1:]
	for _, example := range examples {
		for _, batch := range strings.Split(example, "\n-- then\n") {
			parse(t, verbs.Replace(batch))
		}
	}
}

// TestDocumentedTSQLParses: the T-SQL of the page for users of mssql-changefeed is T-SQL, as far as teesql knows it.
func TestDocumentedTSQLParses(t *testing.T) {
	blocks, _, err := docs.Read("../../../..", "docs/FROM-MSSQL-CHANGEFEED.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range blocks {
		if b.Language == "sql" && b.Verb == "not run" {
			n++
			parse(t, b.Text)
		}
	}
	if n < 8 {
		t.Errorf("the page has %d blocks of T-SQL, want at least 8", n)
	}
}
