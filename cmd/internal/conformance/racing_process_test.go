package conformance

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
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// The real binaries run in children of testdb, which die with this process.
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

// build builds them, from the sources that this test was built from.
func build(t *testing.T) programs {
	t.Helper()
	folder := t.TempDir()
	cmd := exec.Command("go", "build", "-o", folder+"/", "../../rowfeed", "../../../internal/test/checker")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return programs{filepath.Join(folder, "rowfeed"), filepath.Join(folder, "checker")}
}

// program is a running binary.
type program struct {
	*testdb.Child
	args []string
}

func (x *env) start(args ...string) *program {
	x.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		x.Fatal(err)
	}
	return &program{testdb.CrashChild(x.T, "program", "PROGRAM="+string(text)), args}
}

// runs tells whether the program has not ended.
func (p *program) runs() bool { return syscall.Kill(p.PID(), 0) == nil }

// wantAlive asserts that the program has survived.
func (x *env) wantAlive(p *program) {
	x.Helper()
	if !p.runs() {
		x.Fatalf("%s ended by itself:\n%s", strings.Join(p.args[1:], " "), p.Output())
	}
}

// waitFor waits for a line of the program's output.
func (x *env) waitFor(p *program, line *regexp.Regexp) []string {
	x.Helper()
	var found []string
	x.eventually(fmt.Sprintf("%s prints %s", strings.Join(p.args[1:], " "), line), func() bool {
		found = line.FindStringSubmatch(p.Output())
		if found == nil {
			x.wantAlive(p)
		}
		return found != nil
	})
	return found
}

var servingLine = regexp.MustCompile(`address=(127\.0\.0\.1:\d+)`)

// serve starts `rowfeed serve --no-publish` on a free port and answers its address.
func (x *env) serve(bin programs) (p *program, url string) {
	x.Helper()
	p = x.start(bin.rowfeed, "--db", x.db.URL, "serve", "--no-publish", "--listen", "127.0.0.1:0")
	url = "http://" + x.waitFor(p, servingLine)[1]
	if response, err := http.Get(url + "/healthz"); err != nil || response.StatusCode != http.StatusOK {
		x.Fatalf("/healthz: %v %v", response, err)
	} else {
		response.Body.Close()
	}
	return p, url
}

// publisher starts the i-th publisher. The first works when it has the lease, the others
// always: what makes them safe is not the lease.
func (x *env) publisher(bin programs, i int) *program {
	x.Helper()
	args := []string{bin.rowfeed, "--db", x.db.URL, "publish", "kv"}
	if i > 0 {
		args = append(args, "--without-lease")
	}
	return x.start(args...)
}

var verdictLine = regexp.MustCompile(`(?m)^verdict: (.*)$`)

// follower is a checker at work.
type follower struct {
	*program
	log string
}

// followers start readers of the feed at several servers, with pages of all sizes.
func (x *env) followers(bin programs, folder string, urls []string) []*follower {
	x.Helper()
	var all []*follower
	for i, limit := range []string{"3", "100", "5000"} {
		f := &follower{log: filepath.Join(folder, fmt.Sprintf("reader%d.ndjson", i))}
		args := []string{bin.checker, "--feed-url", urls[i%len(urls)] + "/_feeds/fetch/kv", "--limit", limit, "--log", f.log,
			"--table", filepath.Join(folder, "final.ndjson"), "--key", "id"}
		// Capture column keeps no order between keys: what a pass that failed had in its
		// hands comes when the round is over.
		if x.capture != feedtype.CaptureColumn {
			args = append(args, "--writer", "w", "--number", "n", "--after", "prev")
		}
		f.program = x.start(args...)
		all = append(all, f)
	}
	return all
}

// judge writes the table down, lets the followers read to the end and asks for their
// verdicts.
func (x *env) judge(followers []*follower, folder string) {
	x.Helper()
	var lines []byte
	for _, row := range x.rows("SELECT id, w, n, prev, v, note FROM kv", "note") {
		lines = append(append(lines, row...), '\n')
	}
	if err := os.WriteFile(filepath.Join(folder, "final.ndjson"), lines, 0o600); err != nil {
		x.Fatal(err)
	}
	for _, f := range followers {
		x.wantAlive(f.program)
		if err := syscall.Kill(f.PID(), syscall.SIGTERM); err != nil {
			x.Fatal(err)
		}
	}
	for _, f := range followers {
		// It may have ended by now: only its output counts.
		var verdict []string
		x.eventually("the checker judges", func() bool {
			verdict = verdictLine.FindStringSubmatch(f.Output())
			return verdict != nil
		})
		x.Log(verdict[1])
		if !strings.HasPrefix(verdict[1], "0 faults;") {
			x.Errorf("a reader:\n%s", f.Output())
		}
	}
}
