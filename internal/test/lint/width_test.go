package lint

import (
	"bufio"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxWidth is the maximum number of characters in a line of Go. A tab counts 4.
const maxWidth = 120

// TestLinesAreAtMost120CharactersWide checks that no line of Go code or comment is longer than 120 characters, except
// as many lines as width.txt permits in a folder. Generated files are not checked.
func TestLinesAreAtMost120CharactersWide(t *testing.T) {
	permitted := readWidths(t)
	wide := map[string][]string{} // by folder, with file and line
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := path != top && strings.HasPrefix(d.Name(), ".")
			if hidden || d.Name() == "testdata" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		below, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		lines, err := wideLines(path)
		for _, n := range lines {
			folder := filepath.ToSlash(filepath.Dir(below))
			wide[folder] = append(wide[folder], below+":"+strconv.Itoa(n))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	folders := maps.Clone(permitted)
	for folder := range wide {
		folders[folder] = permitted[folder]
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		most, found := folders[folder], wide[folder]
		switch {
		case len(found) > most:
			t.Errorf("%s has %d lines of more than %d characters, and %d are permitted: break them\n%s",
				folder, len(found), maxWidth, most, strings.Join(found, "\n"))
		case len(found) < most:
			t.Errorf("%s has only %d lines of more than %d characters left: write %d in place of %d in width.txt",
				folder, len(found), maxWidth, len(found), most)
		}
	}
}

// readWidths returns the numbers of width.txt by folder.
func readWidths(t *testing.T) map[string]int {
	t.Helper()
	data, err := os.ReadFile("width.txt")
	if err != nil {
		t.Fatal(err)
	}
	permitted := map[string]int{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) != 2 {
			t.Fatalf("width.txt: %q is not a number and a folder", line)
		}
		n, err := strconv.Atoi(fields[0])
		if _, twice := permitted[fields[1]]; err != nil || n < 1 || twice {
			t.Fatalf("width.txt: %q: want a number above 0, and each folder once (%v)", line, err)
		}
		permitted[fields[1]] = n
	}
	return permitted
}

// wideLines returns the numbers of the lines that are too long.
func wideLines(path string) (numbers []int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for n := 1; scanner.Scan(); n++ {
		line := scanner.Text()
		if strings.HasPrefix(line, "// Code generated ") && strings.HasSuffix(line, " DO NOT EDIT.") {
			return nil, nil
		}
		if utf8.RuneCountInString(line)+3*strings.Count(line, "\t") > maxWidth {
			numbers = append(numbers, n)
		}
	}
	return numbers, scanner.Err()
}
