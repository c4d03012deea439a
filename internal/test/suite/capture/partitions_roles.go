package capture

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestPublisherNamesRightsOnPartition (V4): a publisher that may not make the trigger of a partition names the missing
// right and both remedies. The feed stays ready, and upgrade makes the trigger and records what was missed.
func TestPublisherNamesRightsOnPartition(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		f := addPartitioned(x)
		role := newRole(x, "publisher")
		x.Exec(x.Text("capture.grant_all_tables", role), partition(x, "p1", 100, 200), "INSERT INTO p VALUES (100, 0)")
		_, cursor := x.Drain(f, "")
		x.Exec("TRUNCATE p1")
		owner := x.List(x.Text("capture.owner_of_table", "p1"))[0]
		as(x, role, func() {
			whilePublishing(x, "the publisher names the right", func(t *suite.Troubles) bool {
				return tells(t, "p1 has no trigger for TRUNCATE", "not a member of the role "+owner,
					"`rowfeed feed upgrade p` as a member of "+owner,
					"GRANT "+owner+" TO "+role)
			})
			_, err := f.Admin().Upgrade(x.Ctx)
			x.WantCode(err, rowfeed.Refused)
		})
		wantTold(x, f, "public.p1")
		mended, err := f.Admin().Upgrade(x.Ctx)
		if err != nil || len(mended) != 1 || !strings.Contains(mended[0], "public.p1") {
			x.Errorf("upgrade mended %q, %v", mended, err)
		}
		wantTold(x, f)
		cursor = wantLines(x, f, cursor, suite.Gone(100))

		// The role that runs the trigger cannot read the partition, so TRUNCATE would fail.
		other := newRole(x, "other")
		x.Exec(x.Text("capture.grant_create", other), x.Text("capture.give_function", "rowfeed_p_truncate()", role),
			partition(x, "p9", 900, 1000), x.Text("capture.give_table", "p9", other))
		grant := `GRANT SELECT ON "public"."p9" TO ` + role
		whilePublishing(x, "the publisher names the right", func(t *suite.Troubles) bool {
			return tells(t, "p9 has no trigger for TRUNCATE", "the role "+role, "may not read it", grant)
		})
		x.Exec(grant)
		follows(x, f)
		x.Exec(asRole(x, other, "TRUNCATE p9"), x.Text("capture.give_function", "rowfeed_p_truncate()", "CURRENT_USER"))

		// The publisher's role cannot record keys, either.
		x.Exec("REVOKE INSERT ON rowfeed_changes_p FROM "+role,
			"CREATE TABLE p2 (id bigint PRIMARY KEY, v int)", "INSERT INTO p2 VALUES (200, 0)",
			attach(x, "p2", 200, 300), "GRANT SELECT ON p2 TO "+role)
		x.Exec(x.Statements("capture.make_trigger_of_truncate", "p2")...)
		as(x, role, func() {
			whilePublishing(x, "the publisher names the right", func(t *suite.Troubles) bool {
				return tells(t, "record the keys", "grant it INSERT on public.rowfeed_changes_p",
					"`rowfeed feed upgrade p`")
			})
		})
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Error(err)
		}
		wantLines(x, f, cursor, `upsert {"id":200,"v":0}`)
	})
}

// TestMemberOfOwnerFollowsPartitions (V4): a publisher whose role is a member of the table's owner makes the triggers
// of new partitions, and records what was missed.
func TestMemberOfOwnerFollowsPartitions(t *testing.T) {
	eachPartitioned(t, func(x *suite.Env) {
		owner := newRole(x, "owner")
		publisher := newRole(x, "publisher")
		x.Exec("GRANT "+owner+" TO "+publisher, x.Text("capture.grant_create", owner))
		x.Exec(asRole(x, owner, partitioned(x), partition(x, "p0", 0, 100)))
		f := x.Add(rowfeed.FeedSpec{Name: "p", Table: "p"})
		x.Exec("GRANT SELECT ON rowfeed_schema_version TO "+publisher,
			"GRANT SELECT, UPDATE ON rowfeed_feeds, rowfeed_sequences TO "+publisher,
			"GRANT SELECT, INSERT, UPDATE ON rowfeed_leases TO "+publisher,
			"GRANT SELECT, INSERT, DELETE ON rowfeed_changes_p TO "+publisher,
			"GRANT SELECT, INSERT, UPDATE, DELETE ON rowfeed_terms TO "+publisher,
			"GRANT SELECT, INSERT, UPDATE, DELETE ON rowfeed_positions_p TO "+publisher)
		x.Exec(asRole(x, owner, partition(x, "p1", 100, 200), "INSERT INTO p VALUES (100, 0)",
			"CREATE TABLE p2 (id bigint PRIMARY KEY, v int)", "INSERT INTO p2 VALUES (200, 0)"))
		cursor := wantLines(x, f, "", `upsert {"id":100,"v":0}`)
		x.Exec(asRole(x, owner, "TRUNCATE p1", attach(x, "p2", 200, 300)))
		as(x, publisher, func() { follows(x, f) })
		wantLines(x, f, cursor, suite.Gone(100), `upsert {"id":200,"v":0}`)
	})
}

// as runs fn while new sessions of rowfeed's pool have a role.
func as(x *suite.Env, role string, fn func()) {
	x.Helper()
	x.Exec("GRANT " + role + " TO CURRENT_USER")
	run := func(statement string) {
		x.Exec(statement)
		x.Pool.SetMaxIdleConns(0)
		x.Pool.SetMaxIdleConns(8)
	}
	run(x.Text("capture.begin_sessions_in_role", x.DB.Name, role))
	defer run(x.Text("capture.begin_sessions_without_role", x.DB.Name))
	fn()
}

// asRole returns SQL that runs statements with the rights of a role.
func asRole(x *suite.Env, role string, statements ...string) string {
	return x.Text("capture.run_as_role", role, strings.Join(statements, "; "))
}
