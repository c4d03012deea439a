// Command cases keeps the inventory of the repository's test cases. It reads the cases from the source: their names,
// the databases that each runs on, and the rows of docs/CAPABILITIES.md that each shows. From anywhere in the
// repository,
//
//	go run ./internal/test/cases
//
// adds new cases to cases.txt, makes docs/CAPABILITIES.md from capabilities.txt, and lists the tests of each folder of
// the suite in its file tests.go. The tests of this package fail if one of these is out of date, if a case of cases.txt
// no longer exists or no longer runs on a database, and if a row that says "run" has no case.
//
// A case names the rows that it shows in the first line of its comment, after its name:
//
//	// TestFeedsAreIndependent (M5, M16): feeds advance independently.
//
// A case that is renamed, moved or removed gets a line in moved.txt.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Files of this package, and files that it makes.
const (
	inventoryFile = "cases.txt"
	movedFile     = "moved.txt"
	templateFile  = "capabilities.txt"
	pageFile      = "docs/CAPABILITIES.md" // below the repository's root
)

func main() {
	if err := renew(); err != nil {
		fmt.Fprintln(os.Stderr, "cases:", err)
		os.Exit(1)
	}
}

// renew writes the files that this command makes.
func renew() error {
	r, err := open(".")
	if err != nil {
		return err
	}
	text := formatInventory(added(r.inventory, r.moved, r.cases))
	if err := os.WriteFile(filepath.Join(r.folder, inventoryFile), []byte(text), 0o644); err != nil {
		return err
	}
	for folder, tests := range r.lists {
		if err := os.WriteFile(filepath.Join(r.root, folder, listFile), []byte(list(folder, tests)),
			0o644); err != nil {
			return err
		}
	}
	made, problems := page(r.template, r.cases)
	if len(problems) > 0 {
		return errors.New(problems[0])
	}
	return os.WriteFile(filepath.Join(r.root, pageFile), []byte(made), 0o644)
}

// repository is what the command and the tests read.
type repository struct {
	root, folder string // the root's folder, and this package's
	cases        []Case
	lists        map[string][]string // the tests of the suite's folders
	inventory    []Case
	moved        []move
	template     string
}

// open reads the repository of the directory.
func open(directory string) (*repository, error) {
	root, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	for ; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, pageFile)); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return nil, fmt.Errorf("no %s in a directory above %s", pageFile, directory)
		}
	}
	r := &repository{root: root}
	if r.cases, r.lists, r.folder, err = read(root); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range []string{inventoryFile, movedFile, templateFile} {
		text, err := os.ReadFile(filepath.Join(r.folder, name))
		if err != nil {
			return nil, err
		}
		files[name] = string(text)
	}
	r.template = files[templateFile]
	if r.inventory, err = parseInventory(files[inventoryFile]); err != nil {
		return nil, err
	}
	r.moved, err = parseMoved(files[movedFile])
	return r, err
}
