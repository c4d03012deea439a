package main

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// kept is a guarantee, a hazard or a row of docs/CAPABILITIES.md that needs a mutant.
type kept struct {
	ID, Title string
	None      string // the reason why there can be no mutant; empty if one is needed
}

// guarantees reads guarantees.txt.
func guarantees(fsys fs.FS) ([]kept, error) {
	text, err := fs.ReadFile(fsys, "guarantees.txt")
	if err != nil {
		return nil, err
	}
	var all []kept
	for i, line := range strings.Split(string(text), "\n") {
		if reason, ok := strings.CutPrefix(line, "  none: "); ok && len(all) > 0 {
			all[len(all)-1].None = reason
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		id, title, _ := strings.Cut(line, " ")
		if id == "" || title == "" || slices.ContainsFunc(all, func(k kept) bool { return k.ID == id }) {
			return nil, fmt.Errorf("guarantees.txt:%d: want an identifier that is used once, and a sentence", i+1)
		}
		all = append(all, kept{ID: id, Title: title})
	}
	return all, nil
}

// uncovered returns what is wrong with the mutants' list as a whole: a guarantee without a mutant, an
// unknown identifier, a reason that no longer holds. Numbered guarantees need a mutant that CI runs.
func uncovered(all []kept, mutants []mutant) (problems []string) {
	count, ci := map[string]int{}, map[string]bool{}
	for _, m := range mutants {
		for _, id := range m.Keeps {
			count[id]++
			ci[id] = ci[id] || m.Short
			if !slices.ContainsFunc(all, func(k kept) bool { return k.ID == id }) {
				problems = append(problems, fmt.Sprintf("%s: guarantees.txt has no %s", m.ID, id))
			}
		}
	}
	for _, k := range all {
		switch {
		case k.None == "" && count[k.ID] == 0:
			problems = append(problems, fmt.Sprintf("no mutant keeps %s: %s", k.ID, k.Title))
		case k.None != "" && count[k.ID] > 0:
			problems = append(problems, fmt.Sprintf("%s has mutants, but guarantees.txt says that it has none", k.ID))
		case k.ID[0] == 'G' && !ci[k.ID]:
			problems = append(problems, fmt.Sprintf("CI runs no mutant of %s: %s", k.ID, k.Title))
		}
	}
	return problems
}

// list prints for each guarantee which mutants keep it.
func list(w io.Writer, all []kept, mutants []mutant) {
	for _, k := range all {
		fmt.Fprintf(w, "%s %s\n", k.ID, k.Title)
		if k.None != "" {
			fmt.Fprintf(w, "    none: %s\n", k.None)
		}
		for _, m := range mutants {
			if slices.Contains(m.Keeps, k.ID) {
				ci := map[bool]string{true: "(CI)"}[m.Short]
				fmt.Fprintf(w, "    %-45s %s\n", m.ID, strings.Join(strings.Fields(m.Test+" "+m.Engines+" "+ci), " "))
			}
		}
	}
}
