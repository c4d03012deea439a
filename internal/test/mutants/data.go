package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed guarantees.txt data/*.txt
var files embed.FS

// mutant is one edit and the test that must fail with it.
type mutant struct {
	ID      string
	Keeps   []string // identifiers of guarantees.txt
	Why     string   // what no longer holds with the edit
	File    string   // from the repository's root
	Old     string   // whole lines, which the file has exactly once
	New     string
	Package string // folder of the test, from the repository's root
	Test    string // -run
	Engines string // for ROWFEED_TEST_ENGINES; empty if the test needs none
	Short   bool   // CI runs it
}

// load reads the mutants of all files.
func load(fsys fs.FS) ([]mutant, error) {
	names, err := fs.Glob(fsys, "data/*.txt")
	if err != nil {
		return nil, err
	}
	var all []mutant
	seen := map[string]bool{}
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		mutants, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
		for _, m := range mutants {
			if seen[m.ID] {
				return nil, fmt.Errorf("%s: the id %s is used twice", name, m.ID)
			}
			seen[m.ID] = true
		}
		all = append(all, mutants...)
	}
	return all, nil
}

// parse reads one file. The package comment describes its format. An error begins with the line's number.
func parse(text string) ([]mutant, error) {
	var all []mutant
	var m *mutant
	add := func() error {
		if m == nil {
			return nil
		}
		if err := m.complete(); err != nil {
			return err
		}
		all, m = append(all, *m), nil
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		var err error
		switch id, isID := strings.CutPrefix(line, "mutant "); {
		case line == "":
			err = add()
		case isID && m == nil:
			m = &mutant{ID: id}
		case m == nil && strings.HasPrefix(line, "#"):
		case m == nil:
			err = errors.New("a mutant begins with a line `mutant <id>`")
		case strings.ContainsRune("-+ ", rune(line[0])):
			if line[0] != '+' {
				m.Old += line[1:] + "\n"
			}
			if line[0] != '-' {
				m.New += line[1:] + "\n"
			}
		case m.Old != "":
			err = errors.New("lines of the edit begin with `-`, `+` or a blank; an empty line ends the mutant")
		default:
			err = m.field(line)
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i+1, err)
		}
	}
	if m != nil {
		return nil, fmt.Errorf("the file ends in the middle of the last line of %s", m.ID)
	}
	return all, nil
}

// field reads one of the lines between the id and the edit.
func (m *mutant) field(line string) error {
	name, value, _ := strings.Cut(line, " ")
	var field *string
	switch name {
	case "keeps":
		ids, why, _ := strings.Cut(value, ": ")
		if m.Keeps != nil || why == "" {
			return errors.New("write one line `keeps <identifiers>: <sentence>`")
		}
		m.Keeps, m.Why = strings.Fields(ids), why
		return nil
	case "short":
		m.Short = true
		return nil
	case "test":
		if m.Package, m.Test, _ = strings.Cut(value, " "); m.Test == "" {
			return errors.New("want `test <folder> <pattern>`")
		}
		return nil
	case "engines":
		field = &m.Engines
	case "file":
		field = &m.File
	default:
		return fmt.Errorf("unknown field %q", name)
	}
	if *field != "" || value == "" {
		return fmt.Errorf("%s needs one value", name)
	}
	*field = value
	return nil
}

func (m *mutant) complete() error {
	switch {
	case len(m.Keeps) == 0:
		return fmt.Errorf("%s: a line `keeps` is missing", m.ID)
	case m.File == "" || m.Test == "":
		return fmt.Errorf("%s: a line `file` or `test` is missing", m.ID)
	case m.Old == "" || m.Old == m.New:
		return fmt.Errorf("%s: the edit changes nothing", m.ID)
	}
	return nil
}

// edited returns the file with the edit. With lines, it keeps the lines after the edit at their numbers, if that is
// possible.
func (m mutant) edited(root string, lines bool) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, fmt.Errorf("DOES NOT APPLY: %w%s", err, m.elsewhere(root))
	}
	source := "\n" + string(text)
	if n := occurrences(source, "\n"+m.Old); n != 1 {
		return nil, fmt.Errorf("DOES NOT APPLY: %s has the old text %d times, not once%s", m.File, n, m.elsewhere(root))
	}
	before, after, _ := strings.Cut(source, "\n"+m.Old)
	replacement := m.New
	if lines {
		replacement = sameLines(before, m.Old, m.New)
	}
	return []byte((before + "\n" + replacement + after)[1:]), nil
}

// occurrences also counts overlapping ones: the line that ends one may begin the next.
func occurrences(text, part string) (n int) {
	for at := strings.Index(text, part); at >= 0; at = strings.Index(text, part) {
		n, text = n+1, text[at+1:]
	}
	return n
}

// elsewhere returns the other files that have the old text, for an edit whose text was moved.
func (m mutant) elsewhere(root string) string {
	var found []string
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != filepath.Ext(m.File):
			return nil
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if err == nil && name != m.File && strings.Contains("\n"+string(text), "\n"+m.Old) {
			found = append(found, name)
		}
		return nil
	})
	if found == nil {
		return ""
	}
	slices.Sort(found)
	return "; these have it: " + strings.Join(found, ", ")
}

// repository returns the root of the repository: the nearest folder above that has .git or go.work.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for folder := start; ; folder = filepath.Dir(folder) {
		for _, name := range []string{".git", "go.work"} {
			if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
				return folder, nil
			}
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("no folder above %s has .git or go.work", start)
		}
	}
}
