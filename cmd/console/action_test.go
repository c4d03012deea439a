package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/feedhttp"
)

func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// follow returns the page to which the answer of an action redirects.
func follow(t *testing.T, h http.Handler, r *http.Response) string {
	t.Helper()
	if r.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s is no redirect", r.Status)
	}
	path := strings.TrimLeft(r.Header.Get("Location"), "./")
	var cookies []string
	for _, c := range r.Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" {
			t.Errorf("cookie %v", c)
		}
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	_, body := get(t, h, "/"+path, "Cookie", strings.Join(cookies, "; "))
	return body
}

func lease(t *testing.T, db *rowfeed.DB, name string) {
	t.Helper()
	if _, err := db.Lease(name, time.Hour).TryAcquire(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// action is an action with its form, and a function that tells whether it was done.
type action struct {
	name  string
	form  url.Values
	right string
	asks  bool   // it asks for a confirmation
	says  string // the message after it
	has   func(*testing.T, *rowfeed.DB) bool
}

func actions() []action {
	ours := func(pairs ...string) url.Values {
		return form(append([]string{"consumer", "billing", "feed", "kv"}, pairs...)...)
	}
	status := func(t *testing.T, db *rowfeed.DB) admin.ConsumerStatus {
		all, err := db.Admin().Consumers(t.Context(), rowfeed.ConsumerID{Consumer: "billing"})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0]
	}
	letters := func(t *testing.T, db *rowfeed.DB) []rowfeed.DeadLetter {
		page, err := db.Admin().DeadLetters(t.Context(), rowfeed.LetterQuery{})
		all := page.Letters
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	return []action{
		{
			"pause",
			ours(),
			"administer kv",
			false,
			"1 shard paused",
			func(t *testing.T, db *rowfeed.DB) bool { return status(t, db).Paused },
		},
		{
			"resume",
			ours("shard", "0"),
			"administer kv",
			false,
			"1 shard resumed",
			func(t *testing.T, db *rowfeed.DB) bool { return !status(t, db).Paused },
		},
		{
			"seek",
			ours("to", "1"),
			"administer kv",
			true,
			"1 shard set to 1",
			func(t *testing.T, db *rowfeed.DB) bool { return status(t, db).Cursor == "1" },
		},
		{
			"reset",
			ours(),
			"administer kv",
			true,
			"1 shard set back",
			func(t *testing.T, db *rowfeed.DB) bool { return status(t, db).Cursor == "" },
		},
		{
			"retry",
			ours("key", `{"id":2}`),
			"administer kv",
			false,
			"the consumer retries 1 dead letter",
			func(t *testing.T, db *rowfeed.DB) bool { return letters(t, db)[0].State == rowfeed.LetterRetry },
		},
		{
			"drop",
			ours("key", `{"id":2}`),
			"administer kv",
			true,
			"1 dead letter dropped",
			func(t *testing.T, db *rowfeed.DB) bool { return len(letters(t, db)) == 0 },
		},
		{
			"republish",
			form("feed", "kv", "key", "1"),
			"publish kv",
			false,
			"a new position",
			func(t *testing.T, db *rowfeed.DB) bool {
				f, err := db.Feed(t.Context(), "kv")
				if err != nil {
					t.Fatal(err)
				}
				b, err := f.Admin().Backlog(t.Context(), 10)
				return err == nil && b.Waiting == 1
			},
		},
		{
			"release",
			form("lease", "publish:kv", "epoch", "1"),
			"administer kv",
			true,
			"is released",
			func(t *testing.T, db *rowfeed.DB) bool {
				all, err := db.Admin().Leases(t.Context())
				return err == nil && all[0].State == rowfeed.LeaseFree
			},
		},
	}
}

// audited returns the audit log, the oldest act first.
func audited(t *testing.T, db *rowfeed.DB) (log []string) {
	t.Helper()
	all, err := db.Admin().Acts(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range slices.Backward(all) {
		log = append(log, strings.Join([]string{a.Actor, a.Act, a.Object, a.Detail, a.Outcome}, "|"))
	}
	return log
}

// TestActionsAreDoneAndAudited (O3): every action does what its button says, is confirmed by a message, and is in the
// audit log.
func TestActionsAreDoneAndAudited(t *testing.T) {
	_, db := consumed(t)
	lease(t, db, "publish:kv")
	h := pages(db, nil)
	for _, a := range actions() {
		if a.asks {
			before := len(audited(t, db))
			r, body := post(t, h, "/act/"+a.name, a.form)
			if r.StatusCode != 200 || !strings.Contains(body, `name="confirmed" value="yes"`) ||
				len(audited(t, db)) > before {
				t.Errorf("%s does not ask: %s", a.name, r.Status)
			}
			values := url.Values{"act": {a.name}}
			for k, v := range a.form {
				values[k] = v
			}
			if r, body = get(t, h, "/confirm?"+values.Encode()); r.StatusCode != 200 ||
				!strings.Contains(body, `action="./act/`+a.name+`"`) ||
				a.name != "seek" && a.has(t, db) {
				t.Errorf("%s: the page that asks: %s %s", a.name, r.Status, body)
			}
			a.form.Set("confirmed", "yes")
		}
		r, body := post(t, h, "/act/"+a.name, a.form)
		if r.StatusCode != http.StatusSeeOther {
			t.Fatalf("%s: %s %s", a.name, r.Status, body)
		}
		if body = follow(t, h, r); !strings.Contains(body, a.says) || !strings.Contains(body, `role="status"`) {
			t.Errorf("%s shows no message %q: %s", a.name, a.says, body)
		}
		if !a.has(t, db) {
			t.Errorf("%s did nothing", a.name)
		}
	}
	want := `everyone|consumer pause|consumer "billing" of feed "kv"||done
everyone|consumer resume|consumer "billing" of feed "kv", shard 0||done
everyone|consumer seek|consumer "billing" of feed "kv"|to 1|done
everyone|consumer reset|consumer "billing" of feed "kv"||done
everyone|dead retry|the dead letter with key {"id":2} of consumer "billing" of feed "kv"||done
everyone|dead drop|the dead letter with key {"id":2} of consumer "billing" of feed "kv"||done
everyone|republish|feed "kv"|key 1|done
everyone|lease release|lease "publish:kv"|epoch 1|done`
	if got := strings.Join(audited(t, db), "\n"); got != want {
		t.Errorf("the audit has\n%s\nwant\n%s", got, want)
	}
}

// TestActionsNeedRights: without its right an action is refused and changes nothing, the audit log has the refusal, and
// no page has the button. With only that right it is done.
func TestActionsNeedRights(t *testing.T) {
	for _, a := range actions() {
		t.Run(a.name, func(t *testing.T) {
			_, db := consumed(t)
			lease(t, db, "publish:kv")
			if a.name == "resume" {
				if _, err := db.Admin().PauseConsumer(t.Context(),
					rowfeed.ConsumerID{Consumer: "billing"}); err != nil {
					t.Fatal(err)
				}
			}
			a.form.Set("confirmed", "yes")
			h := console.NewHandler(feedhttp.Of(db), console.Of(db), nil)
			right, _, _ := strings.Cut(a.right, " ")
			for _, who := range []access.Identity{{}, may("read *"), may("read kv", right+" other"),
				may(map[string]string{"publish": "administer *", "administer": "publish *"}[right])} {
				before := len(audited(t, db))
				if r, body := post(t, as(who, h), "/act/"+a.name, a.form); r.StatusCode != http.StatusForbidden ||
					!strings.Contains(body, "Next:") ||
					a.has(t, db) {
					t.Errorf("%+v: %s %s", who.Grants, r.Status, body)
				}
				if log := audited(t, db); len(log) != before+1 || !strings.HasPrefix(log[before], who.Name+"|") ||
					!strings.HasSuffix(log[before], "|refused: forbidden") {
					t.Errorf("%+v: the audit has %q", who.Grants, log)
				}
				for _, path := range []string{"/feeds/kv", "/consumers/billing", "/leases", "/dead-letters"} {
					if _, body := get(t, as(who, h), path); strings.Contains(body, `act/`+a.name+`"`) ||
						strings.Contains(body, "act="+a.name) ||
						strings.Contains(body, `value="`+a.name+`"`) {
						t.Errorf("%+v: %s shows the button", who.Grants, path)
					}
				}
			}
			if r, body := post(t, as(may(a.right), h), "/act/"+a.name, a.form); r.StatusCode != http.StatusSeeOther ||
				!a.has(t, db) {
				t.Errorf("%s: %s %s", a.right, r.Status, body)
			}
		})
	}
}

// TestFormsOfOtherSitesAreRefused: a form that a page of another site sends is refused.
func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	_, db := consumed(t)
	lease(t, db, "publish:kv")
	h := pages(db, &console.Config{Login: noToken})
	for _, forged := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Sec-Fetch-Site", "", "Origin", "https://evil.example"},
		{"Sec-Fetch-Site", "", "Origin", "null"},
	} {
		for _, a := range actions() {
			a.form.Set("confirmed", "yes")
			if a.name == "resume" {
				continue // the consumer is not paused
			}
			if r, body := post(t, h, "/act/"+a.name, a.form, forged...); r.StatusCode != http.StatusForbidden ||
				!strings.Contains(body, "another site") ||
				a.has(t, db) {
				t.Errorf("%v %s: %s", forged, a.name, r.Status)
			}
		}
		for _, path := range []string{"/login", "/logout"} {
			if r, _ := post(t, h, path, form("token", "x"), forged...); r.StatusCode != http.StatusForbidden ||
				len(r.Cookies()) > 0 {
				t.Errorf("%v %s: %s", forged, path, r.Status)
			}
		}
	}
	// A link changes nothing.
	for _, a := range actions() {
		a.form.Set("confirmed", "yes")
		a.form.Set("act", a.name)
		get(t, h, "/act/"+a.name+"?"+a.form.Encode())
		get(t, h, "/confirm?"+a.form.Encode())
		if a.name != "resume" && a.has(t, db) {
			t.Errorf("a link does %s", a.name)
		}
	}
}

// TestSeekSaysWhatItChanges: the page that asks before a seek or a reset refuses a cursor that the action would refuse.
// It says how many positions are skipped or sent again.
func TestSeekSaysWhatItChanges(t *testing.T) {
	_, db := consumed(t) // the cursor is at 3
	if _, err := db.Admin().SeekConsumer(t.Context(), rowfeed.ConsumerID{Consumer: "billing", Feed: "kv"},
		"2"); err != nil {
		t.Fatal(err)
	}
	h := pages(db, nil)
	for _, c := range []struct {
		query  string
		status int
		says   string
	}{
		{"act=seek&to=yesterday", 400, "yesterday"},
		{"act=seek&to=99", 409, "99"},
		{"act=seek&to=3", 200, "never receives the entries at the next 1 position"},
		{"act=seek&to=0", 200, "receives the entries at the last 2 positions again"},
		{"act=seek&to=2", 200, "does not move"},
		{"act=seek&to=1&shard=7", 404, "no such cursor"},
		{"act=reset", 200, "receives the entries at the last 2 positions again"},
	} {
		r, body := get(t, h, "/confirm?consumer=billing&feed=kv&"+c.query)
		if r.StatusCode != c.status || !strings.Contains(body, c.says) ||
			strings.Contains(body, `name="confirmed"`) != (c.status == 200) {
			t.Errorf("%s: %s lacks %q: %s", c.query, r.Status, c.says, body[strings.Index(body, "<main"):])
		}
	}
}

// TestRefusedActionsSayWhy: the answer to a refused action names the cause.
func TestRefusedActionsSayWhy(t *testing.T) {
	_, db := consumed(t)
	lease(t, db, "publish:kv")
	h := pages(db, nil)
	for _, c := range []struct {
		act    string
		form   url.Values
		status int
		says   string
	}{
		{"nope", form(), 400, "there is no action nope"},
		{"pause", form("feed", "kv"), 400, "consumer: it is empty"},
		{"pause", form("consumer", "billing"), 400, "feed: it is empty"},
		{"pause", form("consumer", "<b>", "feed", "kv"), 404, "there is no such cursor"},
		{"pause", form("consumer", "billing", "feed", "kv", "shard", "x'"), 400, "is not a number"},
		{"seek", form("consumer", "billing", "feed", "kv", "to", "<b>", "confirmed", "yes"), 400, "after"},
		{"seek", form("consumer", "billing", "feed", "kv", "to", "99", "confirmed", "yes"), 409, "99"},
		{"retry", form("consumer", "billing", "feed", "kv", "key", `{"id":9}`), 404, "there is no dead letter"},
		{"republish", form("feed", "kv", "key", "99"), 400, "neither a row nor a delete"},
		{"republish", form("feed", "nope", "key", "99"), 404, "there is no such feed"},
		{"release", form("lease", "publish:kv", "epoch", "7", "confirmed", "yes"), 409, "its epoch is 1, not 7"},
		{"release", form("lease", "publish:no", "epoch", "1", "confirmed", "yes"), 404, "it was never acquired"},
	} {
		r, body := post(t, h, "/act/"+c.act, c.form)
		if r.StatusCode != c.status || !strings.Contains(body, c.says) || strings.Contains(body, "<b>") ||
			!strings.Contains(body, "</html>") {
			t.Errorf("%s %v: %s lacks %q: %s", c.act, c.form, r.Status, c.says, body)
		}
	}
	if r, _ := post(t, h, "/act/pause", form("consumer", strings.Repeat("x", 2<<20))); r.StatusCode != 400 {
		t.Errorf("a form of 2 MiB: %s", r.Status)
	}
}
