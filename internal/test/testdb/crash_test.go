package testdb_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// A child is killed before every statement in turn: 3 transactions of Begin, Exec, Commit.
func TestChildIsKilledBeforeEachStatement(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		n := 1
		for ; ; n++ {
			d := e.New(t)
			d.Exec(t, "CREATE TABLE kv (id bigint PRIMARY KEY)")
			child := testdb.CrashChild(t, "insert", "URL="+d.URL, "N="+strconv.Itoa(n))
			blocked := child.WaitMarker(t.Context())
			child.Kill()
			want := (n - 1) / 3
			if got := count(t, d, "SELECT count(*) FROM kv"); got != want {
				t.Errorf("killed before statement %d: %d rows, want %d\n%s", n, got, want, child.Output())
			}
			if !blocked {
				break
			}
		}
		if n != 10 {
			t.Errorf("the child finished at n=%d, want 10", n)
		}
	})
}

// A failing child fails the test: it has neither blocked nor finished.
func TestCrashChildFails(t *testing.T) {
	recorder := &fatalRecorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		testdb.CrashChild(recorder, "fail").WaitMarker(t.Context())
	}()
	<-done
	if !strings.Contains(recorder.message, "the child fails") {
		t.Errorf("the message is %q", recorder.message)
	}
}

// Servers die with the process that started them, and the next process removes their folders.
func TestNothingOutlivesAKilledProcess(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if !e.HasServer() {
			t.Skip("no server")
		}
		tmp, err := os.MkdirTemp("/tmp", "rowfeed-outlive-") // servers may use it
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(tmp, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(tmp) })
		child := testdb.CrashChild(t, "forever", "TMPDIR="+tmp, "ROWFEED_TEST_ENGINES="+e.Name)
		if !child.WaitMarker(t.Context()) {
			t.Fatal("the child did not block")
		}
		url := strings.TrimSpace(child.Output()[strings.LastIndex(child.Output(), " ")+1:])
		if err := ping(t, url); err != nil {
			t.Fatal(err)
		}
		folders := serverFolders(t, tmp)
		child.Kill()
		deadline := time.Now().Add(time.Minute)
		for using := ""; ; {
			if using = processUsing(tmp); using == "" {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("still there: %s", using)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if err := ping(t, url); err == nil {
			t.Error("the server answers after its owner's death")
		}
		testdb.SweepFolders(tmp)
		for _, folder := range folders {
			if _, err := os.Stat(folder); err == nil {
				t.Errorf("%s was not swept", folder)
			}
		}
	})
}

// startForever starts a server in a child of the test above and returns its URL.
func startForever(e testdb.Engine) (string, error) {
	recorder := &fatalRecorder{}
	var url string
	done := make(chan struct{})
	go func() {
		defer close(done)
		url = e.New(recorder).URL
	}()
	<-done
	if recorder.message != "" {
		return "", os.NewSyscallError(recorder.message, syscall.EINVAL)
	}
	return url, nil
}

func serverFolders(t *testing.T, tmp string) []string {
	t.Helper()
	folders, _ := filepath.Glob(filepath.Join(tmp, "rowfeed-testdb-*"))
	if len(folders) != 1 {
		t.Fatalf("folders: %v", folders)
	}
	return folders
}

// processUsing returns a process whose folder is below dir.
func processUsing(dir string) string {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir) {
			return link + " -> " + target
		}
	}
	return ""
}

func ping(t *testing.T, url string) error {
	t.Helper()
	db, err := testdb.OpenURL(url, testdb.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return db.PingContext(ctx)
}
