package page

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestViewByType (O1): a view shows the rows with a value, of whatever type the key's column is,
// and neither rows nor tombstones of others.
func TestViewByType(t *testing.T) {
	type column struct{ declaration, mine, others, asked string }
	columns := map[string][]column{
		"sqlite": {
			{"INTEGER", "7", "8", "7"}, {"TEXT", "'acme'", "'Acme'", "acme"}, {"TEXT COLLATE NOCASE", "'acme'", "'ACME'", "acme"}, {"BLOB", "x'0001'", "x'0002'", "AAE="},
			{"TEXT", "''", "' '", ""}, {"REAL", "1.5", "2", "1.5"},
		},
		"postgres": {
			{"bigint", "7", "8", "007"}, {"text", "'acme'", "'Acme'", "acme"}, {"bytea", "'\\x0001'", "'\\x0002'", "AAE="}, {"numeric(10,2)", "1.50", "1.51", "1.5"},
			{"uuid", "'6f9619ff-8b86-d011-b42d-00c04fc964ff'", "'6f9619ff-8b86-d011-b42d-00c04fc964fe'", "6F9619FF-8B86-D011-B42D-00C04FC964FF"},
			{"boolean", "true", "false", "t"}, {"date", "'2026-01-31'", "'2026-02-01'", "2026-01-31"}, {"character(8)", "'acme'", "'acne'", "acme"},
			{"timestamptz", "'2026-01-31 12:00:00+02'", "'2026-01-31 12:00:00+01'", "2026-01-31T10:00:00Z"},
		},
		"mysql": {
			{"bigint unsigned", "18446744073709551615", "8", "18446744073709551615"}, {"varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "'acme'", "'ACME'", "acme"},
			{"varbinary(20)", "x'0001'", "x'0002'", "AAE="}, {"decimal(10,2)", "1.50", "1.51", "1.5"}, {"date", "'2026-01-31'", "'2026-02-01'", "2026-01-31"},
			{"datetime", "'2026-01-31 12:00:00'", "'2026-01-31 12:00:01'", "2026-01-31T12:00:00"},
		},
	}
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		for _, c := range columns[x.Family()] {
			x.Exec("CREATE TABLE tenants (id INTEGER NOT NULL, tenant "+c.declaration+" NOT NULL, v INTEGER, PRIMARY KEY (id, tenant))",
				"INSERT INTO tenants VALUES (1, "+c.mine+", 1), (2, "+c.others+", 2)")
			f := x.Add(rowfeed.FeedSpec{Name: "tenants", Table: "tenants"})
			view := feedtype.View{Where: []feedtype.ViewFilter{{Column: "tenant", Values: []string{c.asked}}}, Mask: []string{"v"}}
			seen := func(after rowfeed.Cursor) (string, rowfeed.Cursor) {
				page, err := view.Page("tenants", x.Fetch(f, after, 0))
				if err != nil {
					x.Fatal(c.declaration, err)
				}
				return string(page.AppendJSON(nil, "tenants")), page.Cursor
			}
			x.Publish(f)
			first, cursor := seen("")
			x.Exec("UPDATE tenants SET v = 3 WHERE id = 2")
			x.Publish(f)
			x.Exec("DELETE FROM tenants")
			x.Publish(f)
			deleted, _ := seen(cursor)
			for page, op := range map[string]string{first: `"op":"upsert"`, deleted: `"op":"delete"`} {
				if strings.Count(page, `"op"`) != 1 || !strings.Contains(page, op+`,"key":{"id":1,`) || strings.Contains(page, `"v"`) {
					x.Errorf("%s: %s", c.declaration, page)
				}
			}
			if err := x.RF.DropFeed(x.Ctx, "tenants"); err != nil {
				x.Fatal(err)
			}
			x.Exec("DROP TABLE tenants")
		}
	})
}
