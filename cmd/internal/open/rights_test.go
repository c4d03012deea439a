//go:build linux

package open

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rowfeed/rowfeed"
)

// TestMissingRightsAreNamed has files and directories that this process may not use. The message says so, and does not
// mention passwords.
func TestMissingRightsAreNamed(t *testing.T) {
	folder, err := os.MkdirTemp("", "rowfeed-rights-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(folder, 0o755))
	place := func(name string, file, directory os.FileMode) string {
		t.Helper()
		inner := filepath.Join(folder, name)
		must(os.Mkdir(inner, 0o755))
		path := filepath.Join(inner, "x.db")
		pool, _, err := Open(t.Context(), "sqlite:"+path, Options{})
		must(err)
		_, err = pool.Exec("CREATE TABLE t (a)")
		must(err)
		must(pool.Close())
		must(os.Chmod(path, file))
		must(os.Chmod(inner, directory))
		return path
	}
	unreadable, closed := place("unreadable", 0, 0o755), place("closed", 0o644, 0o555)
	empty := filepath.Join(folder, "empty")
	must(os.Mkdir(empty, 0o555))
	asNobody(t)
	for path, want := range map[string]string{
		unreadable: "may not be read and written", closed: "may not be",
		filepath.Join(empty, "new.db"): "no files may be made",
	} {
		_, _, err := Open(t.Context(), "sqlite:"+path, Options{})
		var e *rowfeed.Error
		if !errors.As(err, &e) || !strings.Contains(e.Cause, want) ||
			!strings.Contains(e.Next, "the right to read and write the file and its directory") {
			t.Errorf("%s: %v", path, err)
		}
		if err != nil && strings.Contains(err.Error(), "password") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// asNobody drops root's rights until the test ends: root may use all files.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	if err := unix.Setresuid(nobody, nobody, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setresuid(0, 0, 0); err != nil {
			panic(err) // further tests would be meaningless
		}
	})
}
