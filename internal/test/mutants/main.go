// Mutants shows that tests guard what rowfeed promises. Each mutant is one small edit that takes a protection out
// of the code, and names the test that must then fail.
//
//	go run ./internal/test/mutants              run all mutants; about an hour
//	go run ./internal/test/mutants --short      run the mutants that CI runs
//	go run ./internal/test/mutants --run lease  run the mutants whose id matches
//	go run ./internal/test/mutants --compile    check only that every mutant applies and compiles, that its test
//	                                            exists, and that every guarantee has a mutant; seconds
//	go run ./internal/test/mutants --list       print which mutants keep each guarantee and hazard
//
// The edit is laid over the sources by `go test -overlay`; no file is changed. Most mutants are linked with packages
// that are compiled already (see linker). A mutant survives if its test passes. The exit code is 1 if a mutant
// survives, no longer applies, no longer compiles, or names a test that does not exist.
//
// # Adding a mutant
//
// Mutants are in data/*.txt, one file for each area, separated by empty lines:
//
//	mutant cursor-without-compare
//	keeps G8 H3: A consumer stores its cursor only if the cursor is still the one that it has read.
//	file consume_cursor.go
//	test ./cmd/internal/suite TestSuite/consume/TestConsumeTwoInstances
//	engines sqlite
//	short
//	-	the lines that the edit removes
//	+	the lines that it puts there
//	 	a line that stays; only to make the text unique
//
// The test is a pattern, as go test -run takes it. The identifiers behind keeps are those of guarantees.txt. Paths are
// from the repository's root. The lines that begin with a minus or a blank must be in the file exactly once, with the
// white space as it is there. The line engines (the value of ROWFEED_TEST_ENGINES) is left out if the test needs no
// database. The line short is for mutants that CI runs. All of them together take no more than two minutes, so most of
// their tests are in the suite, whose packages are compiled already. Choose the fastest test that fails, on SQLite or
// PostgreSQL if the SQL does not differ. Leave out a mutant that shows the same as another one.
// Then run it once: go run ./internal/test/mutants --run '^id$'.
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

type result struct {
	outcome string
	killed  bool
	linked  bool // with packages that were already compiled
	took    time.Duration
	output  string
	err     error // of the run
}

func main() {
	short := flag.Bool("short", false, "only the mutants that CI runs")
	run := flag.String("run", "", "only the mutants whose id matches this regular expression")
	verbose := flag.Bool("v", false, "print the tests' output of mutants that survive")
	compiles := flag.Bool("compile", false, "check only that mutants apply and compile, and that none is missing")
	lists := flag.Bool("list", false, "print which mutants keep each guarantee and hazard")
	green := flag.Bool("green", false, "assume that the tests pass without any mutant")
	parallel := flag.Int("p", 2, "number of mutants to run at once")
	flag.Parse()
	pattern, err := regexp.Compile(*run)
	if err != nil {
		fail("--run:", err)
	}
	root, err := repository()
	if err != nil {
		fail(err)
	}
	all, err := load(files)
	if err != nil {
		fail(err)
	}
	needs, err := guarantees(files)
	if err != nil {
		fail(err)
	}
	var chosen []mutant
	for _, m := range all {
		if (!*short || m.Short) && pattern.MatchString(m.ID) {
			chosen = append(chosen, m)
		}
	}
	switch {
	case *lists:
		list(os.Stdout, needs, chosen)
		return
	case *compiles:
		problems := uncovered(needs, all)
		for _, problem := range problems {
			fmt.Println(problem)
		}
		if compile(root, chosen)+len(problems) > 0 {
			os.Exit(1)
		}
		return
	}
	linker := newLinker(root)
	if !*green && !baseline(linker, chosen) {
		os.Exit(1)
	}
	results := tryAll(linker, chosen, *parallel)
	survivors := report(chosen, results, *verbose)
	if survivors > 0 || len(chosen) == 0 {
		os.Exit(1)
	}
}

// tryAll tries the chosen mutants, several at once.
func tryAll(linker *linker, chosen []mutant, parallel int) []result {
	results := make([]result, len(chosen))
	next := make(chan int)
	var group sync.WaitGroup
	for range parallel {
		group.Go(func() {
			for i := range next {
				results[i] = try(linker, chosen[i])
				how := map[bool]string{true: ", linked"}[results[i].linked]
				fmt.Fprintf(os.Stderr, "%-45s %s (%.0f s%s)\n", chosen[i].ID, results[i].outcome,
					results[i].took.Seconds(), how)
			}
		})
	}
	for i := range chosen {
		next <- i
	}
	close(next)
	group.Wait()
	return results
}

// report prints the outcome of each mutant, and returns the number of mutants that survive.
func report(chosen []mutant, results []result, verbose bool) (survivors int) {
	table := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "mutant\tkeeps\ttest\toutcome")
	for i, m := range chosen {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.ID, strings.Join(m.Keeps, " "), m.Test, results[i].outcome)
		if !results[i].killed {
			survivors++
		}
	}
	table.Flush()
	fmt.Printf("%d mutants, %d killed, %d not\n", len(chosen), len(chosen)-survivors, survivors)
	if verbose {
		for i, m := range chosen {
			if !results[i].killed {
				fmt.Printf("\n=== %s\n%s\n", m.ID, results[i].output)
			}
		}
	}
	return survivors
}

func fail(problem ...any) {
	fmt.Fprintln(os.Stderr, append([]any{"mutants:"}, problem...)...)
	os.Exit(2)
}

// baseline runs the tests of the chosen mutants without a mutant, in binaries that are built in the same way. The tests
// must pass: a test that always fails kills every mutant.
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

// noTests is what a test binary prints if no test matches.
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
	case strings.Contains(r.output, "run scripts/setup.sh"):
		r.outcome = "NO DATABASE"
	case errors.As(r.err, &exit) && (strings.Contains(r.output, "--- FAIL: ") || strings.Contains(r.output, "panic: ")):
		r.outcome, r.killed = "killed", true
	default:
		r.outcome = r.err.Error()
	}
	return r
}

// run runs the mutant's test. It returns what the test printed and whether its binary was linked. The error is an
// *exec.ExitError if the test failed.
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
	// In GOFLAGS, so that it also applies to binaries that tests build.
	cmd.Env = append(os.Environ(), "ROWFEED_TEST_EVERY_KILL=1", "GOFLAGS=-overlay="+overlay+" "+os.Getenv("GOFLAGS"))
	if m.Engines != "" {
		cmd.Env = append(cmd.Env, "ROWFEED_TEST_ENGINES="+m.Engines, "ROWFEED_TEST_ALL=1") // no quick set
	}
	out, err := cmd.CombinedOutput()
	return string(out), linked, err
}

// overlay writes the edited file and the map that replaces the original with it.
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
