// Mutants shows that the tests guard what they claim to: it takes each protection
// out of the code, one small edit at a time, and runs the test that must then fail.
//
//	go run ./internal/mutants              all of them, half an hour
//	go run ./internal/mutants --short      those that CI runs
//	go run ./internal/mutants --run lease  those whose name matches
//	go run ./internal/mutants --compile    only whether they apply and compile; seconds
//
// The edit is laid over the sources by `go test -overlay`; no file is changed. Most are
// linked with the tests that are compiled already (see linker). A mutant survives when its test stays green; that, an edit that no longer applies
// or no longer compiles, and a test that matches nothing, all end in exit code 1.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// mutant is one edit and the test that must go red.
type mutant struct {
	Name    string
	Guards  string // the guarantee or hazard
	File    string // from the module's root
	Old     string // must stand in the file exactly once
	New     string
	Package string
	Test    string // -run
	Engines string // for ROWFEED_TEST_ENGINES; empty: all
	Short   bool   // CI runs it
}

type result struct {
	outcome string
	killed  bool
	linked  bool // with what was compiled already
	took    time.Duration
	output  string
	err     error // of the run
}

func main() {
	short := flag.Bool("short", false, "only the mutants that CI runs")
	run := flag.String("run", "", "only the mutants whose name matches this regular expression")
	verbose := flag.Bool("v", false, "print the tests' output of mutants that survive")
	compiles := flag.Bool("compile", false, "only check that the edits apply and compile")
	green := flag.Bool("green", false, "take the tests to be green without any mutant: they have just been run")
	parallel := flag.Int("p", 2, "mutants at once")
	flag.Parse()
	pattern, err := regexp.Compile(*run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: --run:", err)
		os.Exit(2)
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants: run it inside the module:", err)
		os.Exit(2)
	}
	root := strings.TrimSpace(string(out))
	var chosen []mutant
	for _, m := range mutants {
		if (!*short || m.Short) && pattern.MatchString(m.Name) {
			chosen = append(chosen, m)
		}
	}
	if *compiles {
		if compile(root, chosen) > 0 {
			os.Exit(1)
		}
		return
	}
	linker := newLinker(root)
	if !*green && !baseline(linker, chosen) {
		os.Exit(1)
	}
	results := make([]result, len(chosen))
	slots := make(chan struct{}, *parallel)
	var group sync.WaitGroup
	for i, m := range chosen {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i] = try(linker, m)
			fmt.Fprintf(os.Stderr, "%-40s %s (%.0f s%s)\n", m.Name, results[i].outcome, results[i].took.Seconds(), map[bool]string{true: ", linked"}[results[i].linked])
		})
	}
	group.Wait()
	survivors := 0
	table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "mutant\tguards\ttest\toutcome")
	for i, m := range chosen {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.Name, m.Guards, m.Test, results[i].outcome)
		if !results[i].killed {
			survivors++
		}
	}
	table.Flush()
	fmt.Printf("%d mutants, %d killed, %d not\n", len(chosen), len(chosen)-survivors, survivors)
	if *verbose {
		for i, m := range chosen {
			if !results[i].killed {
				fmt.Printf("\n=== %s\n%s\n", m.Name, results[i].output)
			}
		}
	}
	if survivors > 0 || len(chosen) == 0 {
		os.Exit(1)
	}
}

// baseline runs the tests of the chosen mutants on the code as it is, in a binary that is made as
// theirs are. They must be green: a red test kills every mutant.
func baseline(l *linker, chosen []mutant) bool {
	type suite struct{ pkg, engines string }
	groups := map[suite][]mutant{}
	for _, m := range chosen {
		s := suite{m.Package, m.Engines}
		groups[s] = append(groups[s], m)
	}
	green := true
	for s, group := range groups {
		var names []string
		for _, m := range group {
			names = append(names, m.Test)
		}
		slices.Sort(names)
		none := group[max(0, slices.IndexFunc(group, l.links))]
		none.New, none.Test = none.Old, strings.Join(slices.Compact(names), "|")
		output, _, err := run(l, none, time.Hour)
		if err != nil || strings.Contains(output, noTests) {
			fmt.Printf("the tests are not green without any mutant (%s on %s): %v\n%s\n", s.pkg, s.engines, err, output)
			green = false
		}
	}
	return green
}

// noTests is what a test binary says whose tests match nothing.
const noTests = "no tests to run"

func try(l *linker, m mutant) (r result) {
	started := time.Now()
	defer func() { r.took = time.Since(started) }()
	r.output, r.linked, r.err = run(l, m, 5*time.Minute)
	var exit *exec.ExitError
	switch {
	case strings.Contains(r.output, "[build failed]") || strings.Contains(r.output, "[setup failed]"):
		r.outcome = "DOES NOT COMPILE"
	case r.err == nil && strings.Contains(r.output, noTests):
		r.outcome = "NO SUCH TEST"
	case r.err == nil:
		r.outcome = "SURVIVED"
	case errors.As(r.err, &exit):
		r.outcome, r.killed = "killed", true
	default:
		r.outcome = r.err.Error()
	}
	return r
}

// run runs the mutant's test, and answers what it printed, and whether its binary was linked of
// what is compiled; the error is an *exec.ExitError where the test failed.
func run(l *linker, m mutant, timeout time.Duration) (output string, linked bool, err error) {
	overlay, cleanup, err := m.overlay(l.root)
	if err != nil {
		return "", false, err
	}
	defer cleanup()
	cmd := exec.Command("go", "test", "-count=1", "-vet=off", "-timeout="+timeout.String(), "-run", m.Test, m.Package)
	cmd.Dir = l.root
	binary, dir, err := l.link(m, filepath.Dir(overlay))
	if linked = err == nil; linked {
		cmd = exec.Command(binary, "-test.paniconexit0", "-test.timeout="+timeout.String(), "-test.run="+m.Test)
		cmd.Dir = dir
	} else if !errors.Is(err, errNotLinked) {
		return "", false, err
	}
	// In GOFLAGS, so that it reaches the binaries that tests build, too.
	cmd.Env = append(os.Environ(), "ROWFEED_TEST_EVERY_KILL=1", "GOFLAGS=-overlay="+overlay+" "+os.Getenv("GOFLAGS"))
	if m.Engines != "" {
		cmd.Env = append(cmd.Env, "ROWFEED_TEST_ENGINES="+m.Engines)
	}
	out, err := cmd.CombinedOutput()
	return string(out), linked, err
}

// overlay writes the edited file and the map that lays it over the original.
func (m mutant) overlay(root string) (path string, cleanup func(), err error) {
	source, err := m.edited(root, false)
	if err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp("", "rowfeed-mutant-")
	if err != nil {
		return "", nil, err
	}
	cleanup = func() { os.RemoveAll(folder) }
	original, edited := filepath.Join(root, m.File), filepath.Join(folder, filepath.Base(m.File))
	path = filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: edited}})
	if err == nil {
		err = os.WriteFile(edited, source, 0o600)
	}
	if err == nil {
		err = os.WriteFile(path, replace, 0o600)
	}
	if err != nil {
		cleanup()
		return "", nil, err
	}
	return path, cleanup, nil
}

// edited is the file with the edit in it; with its lines where they were, if asked for and possible.
func (m mutant) edited(root string, lines bool) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(source), m.Old); n != 1 {
		return nil, fmt.Errorf("DOES NOT APPLY: the old text stands %d times in %s", n, m.File)
	}
	before, after, _ := strings.Cut(string(source), m.Old)
	replacement := m.New
	if lines {
		replacement = sameLines(before, m.Old, m.New)
	}
	return []byte(before + replacement + after), nil
}
