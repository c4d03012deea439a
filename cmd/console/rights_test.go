package console_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// TestPagesShowOnlyWhatRightsAllow: feeds, rows, consumers, leases, dead letters and statements are shown only to
// users with the right. Other users see not even the names.
func TestPagesShowOnlyWhatRightsAllow(t *testing.T) {
	pool, db := consumed(t)
	exec(t, pool, `CREATE TABLE payroll (id INTEGER PRIMARY KEY, v TEXT)`)
	exec(t, pool, `INSERT INTO payroll VALUES (77, 'salary')`)
	consume(t, db, addFeed(t, db, "payroll"), "wages", 77)
	lease(t, db, "publish:payroll")
	lease(t, db, "relay:payroll:bank")
	lease(t, db, "consumer:payroll:wages/1/0")
	lease(t, db, "nightly")
	lease(t, db, "publish:kv")
	if err := db.Admin().Audited(t.Context(), admin.Act{Act: "an old act"},
		func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	paths := []string{"/", "/feeds/kv", "/feeds/payroll", "/feeds/payroll?key=77", "/feeds/payroll?entry=",
		"/consumers", "/consumers/wages", "/leases", "/dead-letters", "/dead-letters?consumer=wages", "/blocked",
		"/audit", "/_console/sample", "/confirm?act=reset&consumer=wages&feed=payroll"}
	h := console.NewHandler(access.Over(feedhttp.Of(db)), console.Of(db), nil)
	said := regexp.MustCompile(`(feed|consumer) &#34;\w+&#34;|No consumer wages ` +
		`has| value="wages"|"\./consumers/wages">Go back`)
	all := func(who access.Identity) string {
		var b strings.Builder
		for _, path := range paths {
			_, body := get(t, as(who, h), path)
			// A page may repeat the name that the request contains.
			b.WriteString(said.ReplaceAllString(body, ""))
		}
		return b.String()
	}
	none, salaries := []string{"payroll", "wages", "salary", "bank", "nightly", "an old act"}, []string{"salary"}
	for _, c := range []struct {
		who         access.Identity
		sees, lacks []string
	}{
		{access.Identity{}, nil, append(none, "kv", "billing")},
		{may("read kv"), []string{"kv", "billing"}, append(none, "no such customer")},
		{may("publish *"), nil, append(none, "billing", "no such customer")},
		{may("administer kv"), []string{"kv", "billing", "no such customer"}, append(none, "<td>b</td>")},
		{may("read payroll"), []string{"payroll", "wages", "salary", "bank"},
			[]string{"billing", "no such customer", "nightly", "an old act"}},
		{may("administer payroll"), []string{"payroll", "wages", "bank", "no such customer", `{&#34;id&#34;:77}`},
			append(salaries, "billing", "nightly", "an old act")},
		{may("read *"), []string{"payroll", "wages", "salary", "kv", "billing", "nightly"},
			[]string{"no such customer", "an old act"}},
		{may("administer *"), []string{"payroll", "kv", "nightly", "no such customer", "an old act"}, salaries},
	} {
		shown := all(c.who)
		for _, want := range c.sees {
			if !strings.Contains(shown, want) {
				t.Errorf("%+v does not see %q", c.who.Grants, want)
			}
		}
		for _, not := range c.lacks {
			if i := strings.Index(shown, not); i >= 0 {
				t.Errorf("%+v sees %q: …%s…", c.who.Grants, not, shown[max(0, i-80):i+len(not)+20])
			}
		}
	}
	// The answer does not tell a user without rights whether a feed exists.
	for _, name := range []string{"payroll", "nope", "%3Cb%3E"} {
		if r, _ := get(t, as(may("read kv"), h), "/feeds/"+name); r.StatusCode != 403 {
			t.Errorf("%s: %s", name, r.Status)
		}
	}
}

// TestLeasesNeedTheRightOnTheirFeed: the name of a lease tells its feed only if rowfeed made the lease.
func TestLeasesNeedTheRightOnTheirFeed(t *testing.T) {
	_, db := open(t)
	names := []string{"publish:kv", "relay:kv:a:b", "consumer:kv:c/2/1", "publish:kv2", "publish", "kv", "publish:KV",
		"consumer:~0011", "x:kv:y"}
	for _, name := range names {
		lease(t, db, name)
	}
	h := console.NewHandler(feedhttp.Of(db), console.Of(db), nil)
	_, body := get(t, as(may("administer kv"), h), "/leases")
	for i, name := range names {
		if got, want := strings.Contains(body,
			"lease="+strings.ReplaceAll(strings.ReplaceAll(name, ":", "%3a"), "/", "%2f")+"&amp;"), i < 3; got != want {
			t.Errorf("lease %s is shown: %v", name, got)
		}
	}
	if _, body = get(t, as(access.Everyone(), h), "/leases"); strings.Count(body, "act=release") != len(names) {
		t.Error("an administrator of all feeds does not see all leases")
	}
	if _, err := db.Admin().ReleaseLease(t.Context(), "kv", 0); err != nil {
		t.Fatal(err)
	}
	if _, body = get(t, as(access.Everyone(), h), "/leases"); strings.Count(body, "act=release") != len(names)-1 ||
		!strings.Contains(body, rowfeed.LeaseFree) {
		t.Error("a free lease has a button to release it")
	}
}
