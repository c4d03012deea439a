package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

const one = `# About.

mutant first
keeps G1 H2: Nothing is lost.
file a.go
test ./b TestC
engines sqlite
short
 func f() {
-	lock()
+	unlock()
 }
`

func TestMutantFilesAreParsed(t *testing.T) {
	got, err := parse(one)
	if err != nil || len(got) != 1 {
		t.Fatalf("parse returned %v, %v", got, err)
	}
	want := mutant{
		ID: "first", Keeps: []string{"G1", "H2"}, Why: "Nothing is lost.", File: "a.go",
		Old: "func f() {\n\tlock()\n}\n", New: "func f() {\n\tunlock()\n}\n",
		Package: "./b", Test: "TestC", Engines: "sqlite", Short: true,
	}
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("parse returned %+v, not %+v", got[0], want)
	}
}

func TestInvalidMutantFilesAreRefused(t *testing.T) {
	for _, c := range []struct{ old, replacement, want string }{
		{"mutant first", "mutation first", "3: a mutant begins with"},
		{"keeps G1 H2: Nothing is lost.\n", "", "a line `keeps` is missing"},
		{"keeps G1 H2: ", "keeps G1 H2 ", "4: write one line `keeps"},
		{"keeps G1", "keeps G1: One.\nkeeps G1", "5: write one line `keeps"},
		{"file a.go\n", "", "a line `file` or `test` is missing"},
		{"file a.go", "file a.go\nfile b.go", "6: file needs one value"},
		{" TestC", "", "6: want `test"},
		{"short", "long", `8: unknown field "long"`},
		{"+\tunlock()", "+\tlock()", "the edit changes nothing"},
		{" }\n", "}\n", "12: lines of the edit begin with"},
		{" }\n", "", ""},
		{" }\n", " }", "in the middle of the last line"},
	} {
		text := strings.Replace(one, c.old, c.replacement, 1)
		_, err := parse(text)
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || c.want == "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in place of %q: %v, not %q", c.replacement, c.old, err, c.want)
		}
	}
	twice := fstest.MapFS{"data/a.txt": {Data: []byte(one)}, "data/b.txt": {Data: []byte(one)}}
	if _, err := load(twice); err == nil || !strings.Contains(err.Error(), "used twice") {
		t.Errorf("load of two mutants with one id: %v", err)
	}
}

func TestEditReplacesTheOnlyOccurrence(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := mutant{ID: "m", File: "a.go", Old: "lock()\n", New: "unlock()\n"}
	for text, want := range map[string]string{
		"lock()\nwork()\n":            "unlock()\nwork()\n",
		"// unlock()\nlock()\nwork()": "// unlock()\nunlock()\nwork()",
	} {
		write("a.go", text)
		if got, err := m.edited(root, false); err != nil || string(got) != want {
			t.Errorf("%q became %q (%v), not %q", text, got, err, want)
		}
	}
	write("b.go", "lock()\n")
	for text, want := range map[string]string{
		"work()\n":         "0 times, not once; these have it: b.go",
		"lock()\nlock()\n": "2 times, not once",
		"\tlock()\n":       "0 times",
	} {
		write("a.go", text)
		if _, err := m.edited(root, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
	write("a.go", "work()\n")
	m.File = "c.go"
	if _, err := m.edited(root, false); err == nil || !strings.Contains(err.Error(), "these have it: b.go") {
		t.Errorf("a file that is missing: %v", err)
	}
}

func TestGuaranteesWithoutMutantAreFound(t *testing.T) {
	text := "# About.\nG1 One.\nH2 Two.\nH3 Three.\n  none: No reason.\n"
	needs, err := guarantees(fstest.MapFS{"guarantees.txt": {Data: []byte(text)}})
	if err != nil || len(needs) != 3 || needs[2].None != "No reason." {
		t.Fatalf("guarantees returned %v, %v", needs, err)
	}
	for _, c := range []struct {
		keeps []string
		short bool
		want  string
	}{
		{[]string{"G1", "H2"}, true, ""},
		{[]string{"G1"}, true, "no mutant keeps H2: Two."},
		{[]string{"G1", "H2"}, false, "CI runs no mutant of G1: One."},
		{[]string{"G1", "H2", "H3"}, true, "H3 has mutants, but guarantees.txt says that it has none"},
		{[]string{"G1", "H2", "H4"}, true, "m: guarantees.txt has no H4"},
	} {
		got := strings.Join(uncovered(needs, []mutant{{ID: "m", Keeps: c.keeps, Short: c.short}}), "\n")
		if got != c.want {
			t.Errorf("%v: %q, not %q", c.keeps, got, c.want)
		}
	}
}

// TestEveryMutantAppliesToTheCode checks that every mutant applies, so that a change of the code cannot disable a
// mutant unnoticed.
func TestEveryMutantAppliesToTheCode(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	all, err := load(files)
	if err != nil {
		t.Fatal(err)
	}
	needs, err := guarantees(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range uncovered(needs, all) {
		t.Error(problem)
	}
	for _, m := range all {
		if _, err := m.edited(root, false); err != nil {
			t.Errorf("%s: %v", m.ID, err)
		}
	}
}
