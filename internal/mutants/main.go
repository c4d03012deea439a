// Mutants shows that the tests guard what they claim to: it takes each protection
// out of the code, one small edit at a time, and runs the test that must then fail.
//
//	go run ./internal/mutants              all of them, some minutes
//	go run ./internal/mutants --short      those that CI runs
//	go run ./internal/mutants --run lease  those whose name matches
//	go run ./internal/mutants --compile    only whether they apply and compile; seconds
//
// The edit is laid over the sources by `go test -overlay`; no file is changed. A
// mutant survives when its test stays green; that, an edit that no longer applies
// or no longer compiles, and a test that matches nothing, all end in exit code 1.
package main

import (
	"encoding/json"
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
	took    time.Duration
	output  string
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
	if !*green && !baseline(root, chosen) {
		os.Exit(1)
	}
	results := make([]result, len(chosen))
	slots := make(chan struct{}, *parallel)
	var group sync.WaitGroup
	for i, m := range chosen {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i] = try(root, m)
			fmt.Fprintf(os.Stderr, "%-40s %s (%.0f s)\n", m.Name, results[i].outcome, results[i].took.Seconds())
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

// baseline runs the tests of the chosen mutants on the code as it is. They must be
// green: a red test kills every mutant.
func baseline(root string, chosen []mutant) bool {
	type suite struct{ pkg, engines string }
	tests := map[suite][]string{}
	for _, m := range chosen {
		s := suite{m.Package, m.Engines}
		tests[s] = append(tests[s], m.Test)
	}
	green := true
	for s, names := range tests {
		slices.Sort(names)
		output, err := test(root, mutant{Package: s.pkg, Engines: s.engines, Test: strings.Join(slices.Compact(names), "|")})
		if err != nil || strings.Contains(output, "no tests to run") {
			fmt.Printf("the tests are not green without any mutant (%s on %s):\n%s\n", s.pkg, s.engines, output)
			green = false
		}
	}
	return green
}

// test runs a mutant's test.
func test(root string, m mutant, goflags ...string) (output string, err error) {
	cmd := exec.Command("go", "test", "-count=1", "-timeout=5m", "-run", m.Test, m.Package)
	cmd.Dir = root
	// In GOFLAGS, so that they reach the binaries that tests build too.
	cmd.Env = append(os.Environ(), "ROWFEED_TEST_EVERY_KILL=1", "GOFLAGS="+strings.Join(append(goflags, os.Getenv("GOFLAGS")), " "))
	if m.Engines != "" {
		cmd.Env = append(cmd.Env, "ROWFEED_TEST_ENGINES="+m.Engines)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func try(root string, m mutant) (r result) {
	started := time.Now()
	defer func() { r.took = time.Since(started) }()
	overlay, cleanup, err := m.overlay(root)
	if err != nil {
		return result{outcome: err.Error()}
	}
	defer cleanup()
	text, err := test(root, m, "-overlay="+overlay)
	switch {
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return result{outcome: "DOES NOT COMPILE", output: text}
	case err == nil && strings.Contains(text, "no tests to run"):
		return result{outcome: "NO SUCH TEST", output: text}
	case err == nil:
		return result{outcome: "SURVIVED", output: text}
	}
	return result{outcome: "killed", killed: true}
}

// overlay writes the edited file and the map that lays it over the original.
func (m mutant) overlay(root string) (path string, cleanup func(), err error) {
	source, err := m.edited(root)
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

// edited is the file with the edit in it.
func (m mutant) edited(root string) ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(source), m.Old); n != 1 {
		return nil, fmt.Errorf("DOES NOT APPLY: the old text stands %d times in %s", n, m.File)
	}
	return []byte(strings.Replace(string(source), m.Old, m.New, 1)), nil
}
