package publish

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// The binaries run in children of testdb, which end with this process.
func init() {
	testdb.RegisterChild("program", func() {
		var args []string
		err := json.Unmarshal([]byte(os.Getenv("PROGRAM")), &args)
		if err == nil {
			err = syscall.Exec(args[0], args, os.Environ())
		}
		fmt.Println(err)
		os.Exit(1)
	})
}

// programs are the binaries that the racing tests run.
type programs struct{ rowfeed, checker string }

// build builds the binaries from the sources of this test, unless ROWFEED_TEST_PROGRAMS names a folder that has them.
func build(t *testing.T) programs {
	t.Helper()
	folder := os.Getenv("ROWFEED_TEST_PROGRAMS")
	if folder == "" {
		folder = t.TempDir()
		cmd := exec.Command("go", "build", "-o", folder+"/", "../../rowfeed", "../../../internal/test/checker")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	return programs{filepath.Join(folder, "rowfeed"), filepath.Join(folder, "checker")}
}

// start starts a program.
func start(x *suite.Env, args ...string) *suite.Program {
	x.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		x.Fatal(err)
	}
	return &suite.Program{Child: testdb.CrashChild(x.T, "program", "PROGRAM="+string(text)), Args: args}
}

var servingLine = regexp.MustCompile(`address=(127\.0\.0\.1:\d+)`)

// serve starts `rowfeed serve --no-publish` on a free port and returns its URL.
func serve(x *suite.Env, bin programs) (p *suite.Program, url string) {
	x.Helper()
	p = start(x, bin.rowfeed, "--db", x.DB.URL, "serve", "--no-publish", "--listen", "127.0.0.1:0")
	url = "http://" + x.WaitFor(p, servingLine)[1]
	if response, err := http.Get(url + "/healthz"); err != nil || response.StatusCode != http.StatusOK {
		x.Fatalf("/healthz: %v %v", response, err)
	} else {
		response.Body.Close()
	}
	return p, url
}

// publisher starts the i-th publisher. Only the first one uses the lease: publishers are safe without it.
func publisher(x *suite.Env, bin programs, i int) *suite.Program {
	x.Helper()
	args := []string{bin.rowfeed, "--db", x.DB.URL, "publish", "kv"}
	if i > 0 {
		args = append(args, "--without-lease")
	}
	return start(x, args...)
}

var verdictLine = regexp.MustCompile(`(?m)^verdict: (.*)$`)

// follower is a running checker, which reads the feed.
type follower struct {
	*suite.Program
	log string
}

// followers start readers of the feed at several servers, with pages of all sizes.
func followers(x *suite.Env, bin programs, folder string, urls []string) []*follower {
	x.Helper()
	var all []*follower
	for i, limit := range []string{"3", "100", "5000"} {
		f := &follower{log: filepath.Join(folder, fmt.Sprintf("reader%d.ndjson", i))}
		args := []string{bin.checker, "--feed-url", urls[i%len(urls)] + "/_feeds/fetch/kv", "--limit", limit,
			"--log", f.log, "--table", filepath.Join(folder, "final.ndjson"), "--key", "id"}
		// Capture "column" keeps no order between keys: the keys of a failed pass are published after all others.
		if x.Capture != feedtype.CaptureColumn {
			args = append(args, "--writer", "w", "--number", "n", "--after", "prev")
		}
		f.Program = start(x, args...)
		all = append(all, f)
	}
	return all
}

// judge writes the table to a file, lets the followers read to the head, and asserts their verdicts.
func judge(x *suite.Env, followers []*follower, folder string) {
	x.Helper()
	var lines []byte
	for _, row := range x.Rows("SELECT id, w, n, prev, v, note FROM kv", "note") {
		lines = append(append(lines, row...), '\n')
	}
	if err := os.WriteFile(filepath.Join(folder, "final.ndjson"), lines, 0o600); err != nil {
		x.Fatal(err)
	}
	for _, f := range followers {
		x.WantAlive(f.Program)
		if err := syscall.Kill(f.PID(), syscall.SIGTERM); err != nil {
			x.Fatal(err)
		}
	}
	for _, f := range followers {
		// The checker may have ended by now: only its output counts.
		var verdict []string
		x.Eventually("the checker prints its verdict", func() bool {
			verdict = verdictLine.FindStringSubmatch(f.Output())
			return verdict != nil
		})
		x.Log(verdict[1])
		if !strings.HasPrefix(verdict[1], "0 faults;") {
			x.Errorf("a reader:\n%s", f.Output())
		}
	}
}
