// Package golden compares what tests produce with files of the repository. A failing test prints the first differing
// lines and the command that updates the files.
package golden

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew instead of comparing them")

// Update reports whether the test run writes the golden files.
func Update() bool { return *update }

// shown is the maximum number of differing lines that a failure prints for a file.
const shown = 8

// Compare compares the files of a folder with what the test produced: texts by the names of their files, which may be
// in subfolders. It reports files that differ, that are missing, or that have no text. With -update it writes the
// files, and removes those that have no text.
func Compare(t testing.TB, folder string, texts map[string]string) {
	t.Helper()
	kept, err := read(folder)
	if err != nil {
		t.Fatal(err)
	}
	different := false
	report := func(name, what string) {
		t.Helper()
		different = true
		t.Errorf("%s: %s", filepath.Join(folder, name), what)
	}
	for name, text := range texts {
		old, ok := kept[name]
		delete(kept, name)
		switch {
		case ok && old == text:
		case *update:
			write(t, filepath.Join(folder, name), text)
		case !ok:
			report(name, "the file does not exist yet")
		default:
			report(name, difference(old, text))
		}
	}
	for name := range kept {
		if !*update {
			report(name, "the test produces no such text any more")
		} else if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if different {
		t.Errorf("If the difference is intended, run in this package's folder: go test -run '%s' -update . "+
			"Then name the difference in the commit's message.", pattern(t.Name()))
	}
}

// pattern returns the -run pattern of the test function in which a subtest runs: its name, or for the suite the names
// of the suite, the folder and the function.
func pattern(name string) string {
	names := strings.Split(name, "/")
	for !strings.HasPrefix(names[len(names)-1], "Test") && len(names) > 1 {
		names = names[:len(names)-1]
	}
	return "^" + strings.Join(names, "$/^") + "$"
}

// read returns the texts of all files of a folder, by their names below it.
func read(folder string) (map[string]string, error) {
	texts := map[string]string{}
	if _, err := os.Stat(folder); os.IsNotExist(err) {
		return texts, nil
	}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		texts[filepath.ToSlash(name)] = string(text)
		return err
	})
	return texts, err
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// difference returns the first lines in which the texts differ: those that only the file has, marked "-", and those
// that only the test has produced, marked "+".
func difference(old, text string) string {
	before, after := strings.Split(old, "\n"), strings.Split(text, "\n")
	from := 0
	for from < len(before) && from < len(after) && before[from] == after[from] {
		from++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "differs from line %d on; the file has %d lines, the test produced %d:",
		from+1, len(before)-1, len(after)-1)
	for _, side := range []struct {
		mark        string
		lines, most []string
	}{{"-", before, after}, {"+", after, before}} {
		there := map[string]bool{}
		for _, line := range side.most {
			there[line] = true
		}
		n := 0
		for _, line := range side.lines[min(from, len(side.lines)):] {
			if there[line] {
				continue
			}
			if n++; n > shown {
				fmt.Fprintf(&b, "\n%s …", side.mark)
				break
			}
			fmt.Fprintf(&b, "\n%s %s", side.mark, line)
		}
	}
	return b.String()
}
