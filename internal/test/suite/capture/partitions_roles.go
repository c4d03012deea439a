package capture

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestPartitionOfAnotherRole (V4): a publisher that may not make the trigger names the missing right and both
// remedies. The feed stays ready, and `feed upgrade` makes the trigger and records what was missed.
func TestPartitionOfAnotherRole(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		role := "publisher_" + x.DB.Name
		x.Exec("CREATE ROLE "+role, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "+role,
			partition("p1", 100, 200), "INSERT INTO p VALUES (100, 0)")
		x.Cleanup(func() { x.Exec("DROP OWNED BY "+role+" CASCADE", "DROP ROLE "+role) })
		_, cursor := x.Drain(f, "")
		x.Exec("TRUNCATE p1")
		owner := text(x, "SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class WHERE relname = 'p1'")
		as(x, role, func() {
			whilePublishing(x, "the publisher names the right", func(t *suite.Troubles) bool {
				return tells(t, "p1 has no trigger for TRUNCATE", "no member of the role "+owner, "`rowfeed feed upgrade p` as a member of "+owner,
					"GRANT "+owner+" TO "+role)
			})
			_, err := f.Admin().Upgrade(x.Ctx)
			x.WantCode(err, rowfeed.Refused)
		})
		wantTold(x, f, "public.p1")
		mended, err := f.Admin().Upgrade(x.Ctx)
		if err != nil || len(mended) != 1 || !strings.Contains(mended[0], "public.p1") {
			x.Errorf("upgrade: %q %v", mended, err)
		}
		wantTold(x, f)
		cursor = wantLines(x, f, cursor, suite.Gone(100))

		// The role that runs the trigger could not read the partition, and TRUNCATE would fail.
		other := "other_" + x.DB.Name
		x.Exec("CREATE ROLE "+other, "GRANT CREATE ON SCHEMA public TO "+other,
			"ALTER FUNCTION rowfeed_p_truncate() OWNER TO "+role, partition("p9", 900, 1000), "ALTER TABLE p9 OWNER TO "+other)
		x.Cleanup(func() { x.Exec("DROP OWNED BY "+other+" CASCADE", "DROP ROLE "+other) })
		grant := `GRANT SELECT ON "public"."p9" TO ` + role
		whilePublishing(x, "the publisher names the right", func(t *suite.Troubles) bool {
			return tells(t, "p9 has no trigger for TRUNCATE", "the role "+role, "may not read it", grant)
		})
		x.Exec(grant)
		follows(x, f)
		x.Exec("SET ROLE "+other+"; TRUNCATE p9; RESET ROLE", "ALTER FUNCTION rowfeed_p_truncate() OWNER TO CURRENT_USER")

		// It may not record keys either, once triggers are another's task.
		x.Exec("REVOKE INSERT ON rowfeed_changes_p FROM "+role,
			"CREATE TABLE p2 (id bigint PRIMARY KEY, v int)", "INSERT INTO p2 VALUES (200, 0)",
			attach("p2", 200, 300), "GRANT SELECT ON p2 TO "+role,
			"CREATE TRIGGER rowfeed_p_truncate BEFORE TRUNCATE ON p2 EXECUTE FUNCTION rowfeed_p_truncate()",
			"ALTER TABLE p2 ENABLE ALWAYS TRIGGER rowfeed_p_truncate")
		as(x, role, func() {
			whilePublishing(x, "the publisher names the right", func(t *suite.Troubles) bool {
				return tells(t, "record the keys", "grant it INSERT on public.rowfeed_changes_p", "`rowfeed feed upgrade p`")
			})
		})
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Error(err)
		}
		wantLines(x, f, cursor, `upsert {"id":200,"v":0}`)
	})
}

// TestPublisherMayFollowPartitions (V4): a login with a publisher's rights, a member of the role that owns the
// table, makes the triggers of new partitions and records what was missed.
func TestPublisherMayFollowPartitions(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		owner, publisher := "owner_"+x.DB.Name, "publisher_"+x.DB.Name
		x.Exec("CREATE ROLE "+owner, "CREATE ROLE "+publisher+" IN ROLE "+owner, "GRANT CREATE ON SCHEMA public TO "+owner)
		x.Cleanup(func() {
			x.Exec("DROP OWNED BY "+publisher+" CASCADE", "DROP OWNED BY "+owner+" CASCADE",
				"DROP ROLE "+publisher, "DROP ROLE "+owner)
		})
		x.Exec("SET ROLE " + owner + "; " + partitioned + "; " + partition("p0", 0, 100) + "; RESET ROLE")
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
		x.Exec("GRANT SELECT ON rowfeed_schema_version TO "+publisher,
			"GRANT SELECT, UPDATE ON rowfeed_feeds, rowfeed_sequences TO "+publisher,
			"GRANT SELECT, INSERT, UPDATE ON rowfeed_leases TO "+publisher,
			"GRANT SELECT, INSERT, DELETE ON rowfeed_changes_p TO "+publisher,
			"GRANT SELECT, INSERT, UPDATE, DELETE ON rowfeed_positions_p TO "+publisher)
		x.Exec("SET ROLE " + owner + "; " + partition("p1", 100, 200) + "; INSERT INTO p VALUES (100, 0); " +
			"CREATE TABLE p2 (id bigint PRIMARY KEY, v int); INSERT INTO p2 VALUES (200, 0); RESET ROLE")
		cursor := wantLines(x, f, "", `upsert {"id":100,"v":0}`)
		x.Exec("SET ROLE " + owner + "; TRUNCATE p1; " + attach("p2", 200, 300) + "; RESET ROLE")
		as(x, publisher, func() { follows(x, f) })
		wantLines(x, f, cursor, suite.Gone(100), `upsert {"id":200,"v":0}`)
	})
}

// as runs fn while rowfeed's pool logs in as a role.
func as(x *suite.Env, role string, fn func()) {
	x.Helper()
	x.Exec("GRANT " + role + " TO CURRENT_USER")
	set := func(to string) {
		x.Exec("ALTER ROLE CURRENT_USER IN DATABASE " + x.DB.Name + to)
		x.Pool.SetMaxIdleConns(0)
		x.Pool.SetMaxIdleConns(8)
	}
	set(" SET role = " + role)
	defer set(" RESET role")
	fn()
}

func text(x *suite.Env, query string) (text string) {
	x.Helper()
	if err := x.DB.Admin().QueryRowContext(x.Ctx, query).Scan(&text); err != nil {
		x.Fatalf("%s: %v", query, err)
	}
	return text
}
