package page

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestViewFiltersByAnyType (O1): a view shows only the rows and tombstones that have the view's value in a column of
// the key, for columns of every type. Each line of the fixture's text has the column's declaration, the view's value
// and another one in SQL, and the value as the view is configured.
func TestViewFiltersByAnyType(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		for line := range strings.Lines(x.Text("page.view_columns")) {
			fields := strings.Split(line, "|")
			for i := range fields {
				fields[i] = strings.TrimSpace(fields[i])
			}
			declaration, mine, others, asked := fields[0], fields[1], fields[2], fields[3]
			x.Exec("CREATE TABLE tenants (id INTEGER NOT NULL, tenant "+declaration+" NOT NULL, v INTEGER, "+
				"PRIMARY KEY (id, tenant))", "INSERT INTO tenants VALUES (1, "+mine+", 1), (2, "+others+", 2)")
			f := x.Add(rowfeed.FeedSpec{Name: "tenants", Table: "tenants"})
			view := feedtype.View{
				Where: []feedtype.ViewFilter{{Column: "tenant", Values: []string{asked}}}, Mask: []string{"v"},
			}
			seen := func(after rowfeed.Cursor) (string, rowfeed.Cursor) {
				page, err := view.Page("tenants", x.Fetch(f, after, 0))
				if err != nil {
					x.Fatal(declaration, err)
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
				only := strings.Count(page, `"op"`) == 1 && strings.Contains(page, op+`,"key":{"id":1,`)
				if !only || strings.Contains(page, `"v"`) {
					x.Errorf("%s: %s", declaration, page)
				}
			}
			if err := x.RF.DropFeed(x.Ctx, "tenants"); err != nil {
				x.Fatal(err)
			}
			x.Exec("DROP TABLE tenants")
		}
	})
}
