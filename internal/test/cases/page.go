package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// States of a row, by their first words. Rows that say "run" need a case. Other rows must not have one.
var (
	wasRun = regexp.MustCompile(`^run( against a fake)?($|[ ,;:(])`)
	notRun = regexp.MustCompile(`^not (run|yet|planned)($|[ ,;:(])`)
)

const pageHead = "<!-- go run ./internal/test/cases makes this page of capabilities.txt and the labels of the tests. " +
	"-->\n\n"

// page makes docs/CAPABILITIES.md. Each row of the template's tables that begin with "row" gets the databases of its
// cases, and their names.
func page(template string, cases []Case) (text string, problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	shown, count := map[string][]Case{}, map[string]int{}
	for _, c := range cases {
		count[c.Name]++
		for _, l := range c.Labels {
			shown[l] = append(shown[l], c)
		}
	}
	var lines []string
	rows := map[string]bool{}
	within := false // whether the line is in a table of rows
	for line := range strings.Lines(template) {
		line = strings.TrimSuffix(line, "\n")
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			within = false
		case cells[0] == "row":
			within = true
			line += " databases | tests |"
		case !within:
		case strings.HasPrefix(line, "|---"):
			line += "---|---|"
		case len(cells) != 3:
			say("%s: a row has three cells: %s", templateFile, line)
		default:
			row, state, of := cells[0], cells[2], shown[cells[0]]
			if rows[row] {
				say("%s: the row %s is there twice", templateFile, row)
			}
			rows[row] = true
			switch {
			case wasRun.MatchString(state) && len(of) == 0:
				say("the row %s says run, but no case has its label", row)
			case notRun.MatchString(state) && len(of) > 0:
				say("the row %s says that it was not run, but %s has its label", row, of[0].path())
			case !wasRun.MatchString(state) && !notRun.MatchString(state):
				say(`the state of row %s begins with none of `+
					`"run", "run against a fake", "not run", "not yet", "not planned"`,
					row)
			}
			line = strings.TrimRight(line, " ") + " " + databases(of) + " | " + names(of, count) + " |"
		}
		lines = append(lines, line)
	}
	for _, c := range cases {
		for _, l := range c.Labels {
			if !rows[l] {
				say("%s names the row %q, which is not in %s", c.path(), l, templateFile)
			}
		}
	}
	return pageHead + strings.Join(lines, "\n") + "\n", problems
}

// databases lists the databases of at least one of the cases.
func databases(cases []Case) string {
	var all Case
	for _, c := range cases {
		all.On, all.WithAll = append(all.On, c.On...), append(all.WithAll, c.WithAll...)
	}
	all.On = databasesIn(all.On, nil)
	if len(all.On) == len(everyEngine) {
		return "all"
	}
	all.WithAll = databasesIn(all.WithAll, all.On)
	return all.databases()
}

// names lists the cases, each with its folder if several have the name.
func names(cases []Case, count map[string]int) string {
	var list []string
	for _, c := range cases {
		if count[c.Name] > 1 {
			list = append(list, c.path())
		} else {
			list = append(list, c.Name)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
