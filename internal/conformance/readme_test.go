package conformance

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/testdb"
)

// TestReadme types the README's first screen, line by line, into a shell: on SQLite
// as it stands, on the other databases with ROWFEED_DB set and the sqlite3 shell's
// statements given to their server. Only what belongs to the machine is changed:
// packages are not installed, the binary is built once, the port is a free one.
func TestReadme(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(?:sh)?\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) < 2 || !strings.Contains(blocks[0][1], "apt-get install -y sqlite3 curl\ngo build") {
		t.Fatal("the README's first block is not the first screen")
	}
	script, shown := blocks[0][1], strings.TrimSpace(blocks[1][1])
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "rowfeed"), "../../cmd/rowfeed").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	_, script, _ = strings.Cut(script, "\n\n")
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := listener.Addr().String()
		listener.Close()
		typed := strings.ReplaceAll(script, "127.0.0.1:8080", address)
		typed = strings.ReplaceAll(typed, "rowfeed serve & sleep 1", fmt.Sprintf(
			"rowfeed serve --listen %s &\nuntil curl -s -o /dev/null %s/readyz; do kill -0 %%1; done", address, address))
		env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		folder := t.TempDir()
		run := func(text string) string {
			t.Helper()
			cmd := exec.Command("bash", "-e", "-u", "-o", "pipefail", "-m", "-c", text)
			cmd.Dir, cmd.Env = folder, env
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, text, out)
			}
			return string(out)
		}
		var out string
		if e.Family == "sqlite" {
			out = run(typed)
		} else {
			db := e.New(t)
			env = append(env, "ROWFEED_DB="+db.URL)
			statement := regexp.MustCompile(`^sqlite3 rowfeed.db "(.*)"$`)
			lines := ""
			for line := range strings.Lines(typed) {
				if m := statement.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
					out += run(lines)
					lines = ""
					db.Exec(t, m[1])
					continue
				}
				lines += line
			}
			out += run(lines)
		}
		if !strings.Contains(out, shown) {
			t.Errorf("the README shows\n%s\nthe shell printed\n%s", shown, out)
		}
		if !strings.Contains(out, `"cursor":"2","more":false,"base64":[]}`) {
			t.Errorf("curl printed no page:\n%s", out)
		}
	})
}
