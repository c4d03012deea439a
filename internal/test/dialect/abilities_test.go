package dialect_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/dialect/postgres"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/dialect/sqlserver"
	"github.com/rowfeed/rowfeed/internal/test/golden"
)

// TestAbilitiesOfEachDatabase: what each database can do, and cannot, is in testdata/abilities.txt. Whatever all
// databases need is there.
func TestAbilitiesOfEachDatabase(t *testing.T) {
	var table strings.Builder
	all := []*dialect.Dialect{sqlite.New(), postgres.New(), mysql.New(), sqlserver.New()}
	optional := false
	of := reflect.TypeFor[dialect.Dialect]()
	for i := range of.NumField() {
		field := of.Field(i)
		optional = optional || field.Name == "IdentitySQL" // the first field of dialect.Dialect that may be nil
		var can []string
		for _, d := range all {
			if !reflect.ValueOf(d).Elem().Field(i).IsZero() {
				can = append(can, d.Name)
			} else if !optional && field.Name != "Experimental" {
				t.Errorf("%s has no %s", d.Name, field.Name)
			}
		}
		if optional {
			fmt.Fprintln(&table, strings.TrimSpace(field.Name+" "+strings.Join(can, " ")))
		}
	}
	golden.Compare(t, "testdata", map[string]string{"abilities.txt": table.String()})
}

// TestDialectsHaveAllRequiredFunctions: each database has all functions of its syntax, except for those that a database
// with LIMIT, with a count(*) that is large enough, or with columns of one type only, need not have.
func TestDialectsHaveAllRequiredFunctions(t *testing.T) {
	for _, d := range []*dialect.Dialect{sqlite.New(), postgres.New(), mysql.New(), sqlserver.New()} {
		if (d.Name == "sqlite") != (d.SkipLocked+d.SkipLockedHint == "") {
			t.Errorf("%s has row locks, and cannot skip them, or the other way round", d.Name)
		}
		for _, part := range []any{*d.Syntax, d.Codec} {
			v := reflect.ValueOf(part)
			for i := range v.NumField() {
				switch name := v.Type().Field(i).Name; name {
				case "Limit", "Skip", "AtMost":
					if (d.Name == "sqlserver") == v.Field(i).IsNil() {
						t.Errorf("%s: %s", d.Name, name)
					}
				case "RowValues", "Count", "DrawsUncut", "SkipLocked", "SkipLockedHint", "IsInteger":
				default:
					if v.Field(i).IsZero() {
						t.Errorf("%s has no %s", d.Name, name)
					}
				}
			}
		}
	}
}

// TestNewestVersionIsLastMigration: tables that all migrations made have the version that this code needs.
func TestNewestVersionIsLastMigration(t *testing.T) {
	for _, d := range []*dialect.Dialect{sqlite.New(), postgres.New(), mysql.New(), sqlserver.New()} {
		all := d.Migrations(dialect.Names{Prefix: "rowfeed_"})
		if last := all[len(all)-1].Version; last != dialect.NewestVersion {
			t.Errorf("%s: the last migration makes version %d, not %d", d.Name, last, dialect.NewestVersion)
		}
	}
}
