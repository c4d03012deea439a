//go:build unix

package testdb

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// step replaces npm, tar, rm and other programs that scripts/setup.sh runs in this test. It does their work, for some
// in two halves, and counts the moments after each half. At the moment KILL_AT it kills the whole set-up.
const step = `#!/bin/sh
moment() {
  n=$(($(cat "$BIN/count") + 1))
  echo $n >"$BIN/count"
  if [ $n = "$KILL_AT" ]; then kill -KILL 0; fi
}
name=$(basename "$0") PATH=${PATH#*:}
case $name in
  chromium) exit ;;
  npm) head -c 100 "$BIN/axe.tgz" >axe.tgz; moment; cp "$BIN/axe.tgz" . ;;
  tar) tar --exclude=axe.min.js "$@"; moment; tar "$@" ;;
  rm) find "$@" -name axe.min.js -delete 2>/dev/null; moment; rm "$@" ;;
  *) "$name" "$@" || exit ;;
esac
moment
`

// TestInterruptedSetupMendsItself (O12) kills scripts/setup.sh at every moment while it replaces a package's folder by
// one of another version. A folder with the version's stamp is always complete, and the next run completes it and
// leaves nothing else behind.
func TestInterruptedSetupMendsItself(t *testing.T) {
	root, err := os.Getwd()
	for ; err == nil && !exists(filepath.Join(root, "scripts/setup.sh")); root = filepath.Dir(root) {
		if root == filepath.Dir(root) {
			t.Fatal("no folder above this one has scripts/setup.sh")
		}
	}
	script, err := os.ReadFile(filepath.Join(root, "scripts/setup.sh"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^axe_version=(\S+)`).FindStringSubmatch(string(script))[1]
	lanes := regexp.MustCompile(`(?m)^for lane in (.*);`).FindStringSubmatch(string(script))[1]

	bin, content := t.TempDir(), strings.Repeat("axe", 1000)
	write(t, filepath.Join(bin, "package/axe.min.js"), content)
	if out, err := exec.Command("tar", "czf", bin+"/axe.tgz", "-C", bin, "package").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	for _, name := range []string{"chromium", "npm", "tar", "rm", "mkdir", "mv", "chmod"} {
		write(t, filepath.Join(bin, name), step)
	}
	setup := func(engines string, killAt int) (killed bool) {
		write(t, filepath.Join(bin, "count"), "0")
		c := exec.Command(filepath.Join(root, "scripts/setup.sh"))
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "BIN="+bin, "ROWFEED_ENGINES_DIR="+engines,
			"ROWFEED_SETUP_SKIP="+strings.Replace(lanes, "browser", "", 1), "KILL_AT="+strconv.Itoa(killAt))
		out, err := c.CombinedOutput()
		if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
			return true
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return false
	}
	moments := 0
	for killed := true; killed; {
		engines := t.TempDir()
		folder := filepath.Join(engines, "axe-core")
		write(t, filepath.Join(folder, "version"), "1.0.0")
		write(t, filepath.Join(folder, "axe.min.js"), "old")
		moments++
		killed = setup(engines, moments)
		if read(filepath.Join(folder, "version")) == version && read(filepath.Join(folder, "axe.min.js")) != content {
			t.Errorf("killed at moment %d: the folder has the version's stamp and is not complete", moments)
		}
		setup(engines, 0)
		if read(filepath.Join(folder, "version")) != version || read(filepath.Join(folder, "axe.min.js")) != content {
			t.Errorf("killed at moment %d: the next set-up does not complete the folder", moments)
		}
		if entries, err := os.ReadDir(engines); err != nil || len(entries) != 1 {
			t.Errorf("killed at moment %d: there remain %v, %v", moments, entries, err)
		}
	}
	if moments < 10 {
		t.Errorf("the set-up was killed at %d moments only", moments)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// read returns a file's content, or "" if there is no file.
func read(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}
