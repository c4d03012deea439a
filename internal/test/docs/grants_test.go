package docs_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// grant is a privilege that a document gives to a login, and the command that fails without it.
type grant struct{ privilege, on, to, command string }

var (
	grantLine  = regexp.MustCompile(`(?m)^GRANT (.+) ON (.+) TO (.+?); +-- (rowfeed .*)$`)
	loginsName = regexp.MustCompile(`^'?(\w+)`)
)

// grants returns the privileges of statements with a command behind them, one by one.
func grants(sql string) (all []grant) {
	for _, m := range grantLine.FindAllStringSubmatch(sql, -1) {
		for _, privilege := range strings.Split(m[1], ", ") {
			all = append(all, grant{privilege, m[2], m[3], m[4]})
		}
	}
	return all
}

// withoutEach revokes each privilege, checks that its command fails because of that, and grants it again. There is
// always something to publish, keys with and without a position, a delete to purge, and a consumer.
func (s *session) withoutEach() {
	s.t.Helper()
	for i, g := range s.grants {
		u, err := url.Parse(s.db.URL)
		if err != nil {
			s.t.Fatal(err)
		}
		u.User = url.UserPassword(loginsName.FindStringSubmatch(g.to)[1], "secret")
		s.db.Exec(s.t, "UPDATE rowfeed_leases SET expires_at = NULL")
		s.db.Exec(s.t, fmt.Sprintf("INSERT INTO kv (id, v) VALUES (%d, 'x')", 100+i))
		s.db.Exec(s.t, fmt.Sprintf("DELETE FROM kv WHERE id = %d", 100+i-1))
		if strings.Contains(g.command, "mirror") {
			s.typed("rowfeed relay kv --to stdout: --consumer mirror --once --restart --db '"+s.db.URL+"'\n", false)
		}
		if strings.Contains(g.command, "publish") || strings.Contains(g.command, "relay") {
			s.typed("rowfeed publish --once --db '"+s.db.URL+"'\n", false)
		}
		s.db.Exec(s.t, "UPDATE rowfeed_positions_kv SET published_at = 0 WHERE deleted <> 0")
		s.db.Exec(s.t, fmt.Sprintf("INSERT INTO kv (id, v) VALUES (%d, 'z')", 1000+i))
		s.db.Exec(s.t, "UPDATE kv SET v = 'z' WHERE id < 1000")
		if strings.Contains(g.command, "lease release") { // a lease that is held
			s.db.Exec(s.t, "UPDATE rowfeed_leases SET expires_at = 9000000000000000000")
		}
		// The row has not been inserted before.
		if g.privilege == "INSERT" && (g.on == "rowfeed_leases" || g.on == "rowfeed_cursors") {
			s.db.Exec(s.t, "DELETE FROM "+g.on)
		}
		s.db.Exec(s.t, fmt.Sprintf("REVOKE %s ON %s FROM %s", g.privilege, g.on, g.to))
		command := g.command + " --db '" + u.String() + "'"
		typed := command + " 2>&1 || true\n"
		if g.command == "rowfeed publish" { // it continues, and logs the error
			typed = "timeout 300 grep -m1 'Next: grant' <(exec " + command +
				" 2>&1) || true; kill $! 2>/dev/null && wait $! || true\n"
		}
		printed := s.typed(typed, false)
		// On MariaDB and MySQL, a login may not see an object without the privilege.
		told := strings.Contains(printed, "Next: grant the missing right") ||
			strings.Contains(printed, "or this login a right on it")
		if !told || !strings.Contains(printed, g.on) {
			s.t.Errorf("without %s on %s for %s: %s printed\n%s", g.privilege, g.on, g.to, command, printed)
		}
		s.db.Exec(s.t, fmt.Sprintf("GRANT %s ON %s TO %s", g.privilege, g.on, g.to))
	}
}
