package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// readsKV is a grant to read kv.
var readsKV = []admin.TokenGrant{{Right: admin.RightRead, Feed: "kv"}}

// TestTokenIsKnownByItsTextAlone (O1): a token is valid from its creation until it is revoked or has expired, by the
// database's clock. The database stores no token's text.
func TestTokenIsKnownByItsTextAlone(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, nil)
		_, err := x.RF.Admin().TokenOf(x.Ctx, "rf_"+strings.Repeat("A", 43))
		x.WantCode(err, rowfeed.NotInitialized)
		x.Migrate()
		x.AddKV()
		add := func(spec admin.TokenSpec) (string, *admin.Token) {
			text, token, err := x.RF.Admin().AddToken(x.Ctx, spec)
			if err != nil || !admin.IsTokenText(text) {
				x.Fatal(text, err)
			}
			return text, token
		}
		text, token := add(admin.TokenSpec{Name: "app@shop", Grants: append(readsKV, readsKV...)})
		other, _ := add(admin.TokenSpec{Name: "other", Grants: readsKV, Expires: time.Hour})
		found, err := x.RF.Admin().TokenOf(x.Ctx, text)
		if err != nil || found.Name != "app@shop" || len(found.Grants) != 1 || found.Grants[0] != readsKV[0] ||
			found.Left != 0 ||
			!found.Same(token) {
			x.Fatalf("%+v %v", found, err)
		}
		found, err = x.RF.Admin().TokenOf(x.Ctx, other)
		if err != nil || found.Name != "other" || found.Left <= 0 || found.Left > time.Hour || found.Same(token) {
			x.Fatalf("%+v %v", found, err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_tokens " +
			"WHERE sha256 LIKE 'rf_%' OR sha256 = '" + text + "'"); n != 0 {
			x.Errorf("%d tokens are stored as they are", n)
		}
		_, err = x.RF.Admin().TokenOf(x.Ctx, text[:len(text)-1]+"!")
		x.WantCode(err, rowfeed.UnknownToken)
		_, err = x.RF.Admin().TokenOf(x.Ctx, "rf_"+strings.Repeat("A", 43))
		x.WantCode(err, rowfeed.UnknownToken)

		x.Exec("UPDATE rowfeed_tokens SET expires_at = " + x.Dialect.Now + " WHERE name = 'other'")
		_, err = x.RF.Admin().TokenOf(x.Ctx, other)
		x.WantCode(err, rowfeed.UnknownToken)
		holding, err := x.RF.Admin().StillHold(x.Ctx, []*admin.Token{found, token})
		if err != nil || len(holding) != 1 || !holding[0].Same(token) {
			x.Errorf("%+v %v", holding, err)
		}
		// A grant that cannot be read may be a restriction. Such a token is invalid, and other tokens are not affected.
		newer, newerToken := add(admin.TokenSpec{Name: "newer", Grants: readsKV})
		for _, view := range []string{`{"rows":["acme"]}`, "null", "{"} {
			x.Exec("UPDATE rowfeed_tokens SET " + x.Dialect.Quote("view") + " = '" + view + "' WHERE name = 'newer'")
			_, err = x.RF.Admin().TokenOf(x.Ctx, newer)
			x.WantCode(err, rowfeed.UnknownToken)
			if holding, err := x.RF.Admin().StillHold(x.Ctx, []*admin.Token{newerToken, token}); err != nil ||
				len(holding) != 1 ||
				!holding[0].Same(token) {
				x.Errorf("%s: %+v %v", view, holding, err)
			}
		}
		for _, want := range []bool{true, false} {
			if ended, err := x.RF.Admin().RevokeToken(x.Ctx, "app@shop"); err != nil || ended != want {
				x.Errorf("revoked: %v %v", ended, err)
			}
		}
		_, err = x.RF.Admin().TokenOf(x.Ctx, text)
		x.WantCode(err, rowfeed.UnknownToken)
		_, err = x.RF.Admin().RevokeToken(x.Ctx, "nobody' OR '1'='1")
		x.WantCode(err, rowfeed.UnknownToken)
		_, _, err = x.RF.Admin().AddToken(x.Ctx, admin.TokenSpec{Name: "app@shop", Grants: readsKV})
		x.WantCode(err, rowfeed.Conflict)
		all, err := x.RF.Admin().Tokens(x.Ctx)
		if err != nil || len(all) != 3 || all[0].State != admin.TokenRevoked || all[0].RevokedAt == nil ||
			all[1].State != admin.TokenUnreadable ||
			all[2].State != admin.TokenExpired {
			x.Errorf("%+v %v", all, err)
		}
	})
}

// TestInvalidTokensAreRefused: invalid names, rights and feeds are refused, whatever SQL they contain.
func TestInvalidTokensAreRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		x.AddKV()
		injected := `a'); DROP TABLE rowfeed_tokens; --`
		grant := func(right admin.Right, feed string) []admin.TokenGrant {
			return []admin.TokenGrant{{Right: right, Feed: feed}}
		}
		masked := func(grants []admin.TokenGrant, column string) admin.TokenSpec {
			return admin.TokenSpec{Name: "a", Grants: grants, View: feedtype.View{Mask: []string{column}}}
		}
		for _, c := range []struct {
			spec admin.TokenSpec
			code rowfeed.Code
		}{
			{admin.TokenSpec{Name: injected, Grants: readsKV}, rowfeed.InvalidRequest},
			{admin.TokenSpec{Name: "", Grants: readsKV}, rowfeed.InvalidRequest},
			{admin.TokenSpec{Name: "a\nb", Grants: readsKV}, rowfeed.InvalidRequest},
			{admin.TokenSpec{Name: "everyone", Grants: readsKV}, rowfeed.InvalidRequest},
			{admin.TokenSpec{Name: "a"}, rowfeed.InvalidRequest},
			{admin.TokenSpec{Name: "a", Grants: grant("own", "kv")}, rowfeed.InvalidRequest},
			{admin.TokenSpec{Name: "a", Grants: grant("read", injected)}, rowfeed.InvalidRequest},
			{admin.TokenSpec{Name: "a", Grants: grant("read", "nothing")}, rowfeed.UnknownFeed},
			{admin.TokenSpec{Name: "a", Grants: readsKV, Expires: time.Millisecond}, rowfeed.InvalidRequest},
			{masked(readsKV, injected), rowfeed.Refused},
			{admin.TokenSpec{Name: "a", Grants: readsKV, View: feedtype.View{Mask: []string{"id"}}}, rowfeed.Refused},
			{admin.TokenSpec{Name: "a", Grants: readsKV, View: feedtype.View{
				Where: []feedtype.ViewFilter{{Column: "v", Values: []string{"1"}}},
			}}, rowfeed.Refused},
			{masked(grant("read", "*"), "nothing"), rowfeed.Refused},
			{masked(grant("administer", "kv"), "v"), rowfeed.InvalidRequest},
		} {
			_, _, err := x.RF.Admin().AddToken(x.Ctx, c.spec)
			x.WantCode(err, c.code)
			var known *rowfeed.Error
			if errors.As(err, &known) && c.code == rowfeed.Refused && known.Next == "" {
				x.Errorf("%v: no next step", err)
			}
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_tokens"); n != 0 {
			x.Errorf("%d tokens", n)
		}
	})
}

// TestActsAreRecordedFirst (O1): an operator's action is in the audit log before it is done, and its outcome
// afterwards, as a code. An action that cannot be recorded is not done.
func TestActsAreRecordedFirst(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, nil)
		done := 0
		do := func(err error) func(context.Context) error {
			return func(context.Context) error {
				done++
				return err
			}
		}
		x.WantCode(x.RF.Admin().Audited(x.Ctx, admin.Act{Act: "lease release"}, do(nil)), rowfeed.NotInitialized)
		if done != 0 {
			x.Error("it was done, and there is no log")
		}
		x.Migrate()
		act := admin.Act{
			Actor:  "me@host",
			Act:    "lease release",
			Object: "publish:kv'); DROP TABLE rowfeed_audit; --",
			Detail: "line\nbreak \xff\x00" + strings.Repeat("é", 1000),
		}
		if err := x.RF.Admin().Audited(x.Ctx, act, func(context.Context) error {
			log, err := x.RF.Admin().Acts(x.Ctx, 0, 1)
			if err != nil || len(log) != 1 || log[0].Outcome != "begun" || log[0].Object != act.Object {
				x.Errorf("%+v %v", log, err)
			}
			return err
		}); err != nil {
			x.Fatal(err)
		}
		failure := &rowfeed.Error{Code: rowfeed.Conflict, Cause: "password=secret"}
		if err := x.RF.Admin().Audited(x.Ctx, admin.Act{Actor: "b", Act: "x"}, do(failure)); !errors.Is(err,
			rowfeed.Conflict) {
			x.Error(err)
		}
		gone, leave := context.WithCancel(x.Ctx)
		if err := x.RF.Admin().Audited(gone, admin.Act{Actor: "c", Act: "y"}, func(context.Context) error {
			leave()
			return gone.Err()
		}); !errors.Is(err, context.Canceled) {
			x.Error(err)
		}
		log, err := x.RF.Admin().Acts(x.Ctx, 0, 10)
		if err != nil || len(log) != 3 {
			x.Fatalf("%+v %v", log, err)
		}
		outcomes := log[0].Outcome + ", " + log[1].Outcome + ", " + log[2].Outcome
		if outcomes != "refused: interrupted, refused: conflict, done" {
			x.Error(outcomes)
		}
		if first := log[2]; strings.ContainsAny(first.Detail, "\n\x00") || !utf8.ValidString(first.Detail) ||
			len(first.Detail) > 1010 ||
			time.Since(first.At).Abs() > time.Hour {
			x.Errorf("%+v", first)
		}
		if below, err := x.RF.Admin().Acts(x.Ctx, log[0].ID, 1); err != nil || len(below) != 1 ||
			below[0].ID != log[1].ID {
			x.Errorf("%+v %v", below, err)
		}
	})
}

// TestPurgeDeletesOldActs: a purge deletes old actions, and nothing else.
func TestPurgeDeletesOldActs(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, nil)
		if _, err := x.RF.Admin().PurgeActs(x.Ctx, admin.AuditRetention); !errors.Is(err, rowfeed.NotInitialized) {
			x.Error(err)
		}
		x.Migrate()
		day := 24 * time.Hour
		for i, age := range []time.Duration{500 * day, 401 * day, 399 * day, 402 * day, day, 0} {
			done := func(context.Context) error { return nil }
			act := admin.Act{Actor: "me", Act: "x", Object: fmt.Sprint(i)}
			if err := x.RF.Admin().Audited(x.Ctx, act, done); err != nil {
				x.Fatal(err)
			}
			x.Exec(fmt.Sprintf("UPDATE rowfeed_audit SET at = at - %d WHERE object = '%d'", age.Microseconds(), i))
		}
		x.Exec(
			"DELETE FROM rowfeed_audit WHERE object = '0'",
			"INSERT INTO rowfeed_audit (mark, at, actor, act, object, detail, outcome) "+
				"VALUES ('late', 0, 'me', 'x', 'late', '', 'done')",
		)
		if _, err := x.RF.Admin().PurgeActs(x.Ctx, day-1); !errors.Is(err, rowfeed.InvalidRequest) {
			x.Error(err)
		}
		for _, want := range []int64{3, 0} {
			if n, err := x.RF.Admin().PurgeActs(x.Ctx, admin.AuditRetention); err != nil || n != want {
				x.Errorf("%d forgotten, want %d; %v", n, want, err)
			}
		}
		log, err := x.RF.Admin().Acts(x.Ctx, 0, 10)
		if err != nil || len(log) != 3 || log[0].Object != "5" || log[1].Object != "4" || log[2].Object != "2" {
			x.Errorf("%+v %v", log, err)
		}
	})
}
