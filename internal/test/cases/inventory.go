package main

import (
	"fmt"
	"slices"
	"strings"
)

// move is a line of moved.txt: the old path became the new path. A path is that of a case, or of a folder with
// everything below it.
type move struct {
	old, new string
	gone     bool // new has the reason
}

// parseMoved reads lines "old -> new" and "old -> gone: the reason".
func parseMoved(text string) (moved []move, err error) {
	for n, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		m := move{}
		var ok bool
		if m.old, m.new, ok = strings.Cut(line, " -> "); !ok || m.old == "" || m.new == "" {
			return nil, fmt.Errorf(`%s:%d: %q is not "old -> new"`, movedFile, n+1, line)
		}
		if m.new, m.gone = strings.CutPrefix(m.new, "gone: "); !m.gone && strings.Contains(m.new, " ") {
			return nil, fmt.Errorf(`%s:%d: a case that was removed needs "gone: " and the reason`, movedFile, n+1)
		}
		moved = append(moved, m)
	}
	return moved, nil
}

// apply returns the path after the move, and whether the move concerns the path.
func (m move) apply(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, m.old)
	isFolder := strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, ".")
	if !ok || rest != "" && !isFolder {
		return path, false
	}
	return m.new + rest, true
}

// where follows a case of the inventory through all moves, from the first to the last. used counts the cases of each
// move.
func where(path string, moved []move, used []int) (now string, gone bool) {
	for i, m := range moved {
		next, ok := m.apply(path)
		if !ok {
			continue
		}
		if used != nil {
			used[i]++
		}
		if m.gone {
			return "", true
		}
		path = next
	}
	return path, false
}

// check compares the inventory with the existing cases.
func check(inventory []Case, moved []move, cases []Case) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	is := map[string]Case{}
	for _, c := range cases {
		is[c.path()] = c
	}
	used := make([]int, len(moved))
	known := map[string]bool{}
	for _, was := range inventory {
		path, gone := where(was.path(), moved, used)
		c, exists := is[path]
		switch {
		case gone:
			continue
		case known[path]:
			say("two cases of %s are now %s: give the reason in %s why one is gone", inventoryFile, path, movedFile)
			continue
		case !exists:
			say("the case %s no longer exists: add to %s its new path, or the reason why it is gone", path, movedFile)
			continue
		}
		known[path] = true
		for _, database := range was.On {
			if !slices.Contains(c.On, database) {
				say("%s does not run on %s any more", path, database)
			}
		}
		for _, database := range was.WithAll {
			if !slices.Contains(c.On, database) && !slices.Contains(c.WithAll, database) {
				say("%s does not run on %s any more, not even with ROWFEED_TEST_ALL=1", path, database)
			}
		}
	}
	for i, m := range moved {
		if used[i] == 0 {
			say("%s: no case of %s had the path %s: correct the line, or remove it", movedFile, inventoryFile, m.old)
		}
	}
	for _, c := range cases {
		if len(c.On) == 0 && len(c.WithAll) > 0 {
			say("%s runs on no database unless ROWFEED_TEST_ALL is 1: add testdb.Quick to it", c.path())
		}
		if !known[c.path()] {
			say("%s is not in %s: run go run ./internal/test/cases", c.path(), inventoryFile)
		}
	}
	if len(problems) == 0 && formatInventory(added(inventory, moved, cases)) != formatInventory(inventory) {
		say("%s is out of date: run go run ./internal/test/cases", inventoryFile)
	}
	return problems
}

// added returns the inventory with new cases, and with further databases of cases. It keeps what the inventory has,
// under the old paths.
func added(inventory []Case, moved []move, cases []Case) []Case {
	is := map[string]Case{}
	for _, c := range cases {
		is[c.path()] = c
	}
	known := map[string]bool{}
	var all []Case
	for _, was := range inventory {
		path, gone := where(was.path(), moved, nil)
		if c, exists := is[path]; exists && !gone {
			known[path] = true
			was.On = databasesIn(append(slices.Clone(was.On), c.On...), nil)
			was.WithAll = databasesIn(append(slices.Clone(was.WithAll), c.WithAll...), was.On)
		}
		all = append(all, was)
	}
	for _, c := range cases {
		if !known[c.path()] {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, compare)
	return all
}

// databasesIn returns the names in order, each once, without the others.
func databasesIn(names, without []string) (sorted []string) {
	for _, e := range everyEngine {
		if slices.Contains(names, e.Name) && !slices.Contains(without, e.Name) {
			sorted = append(sorted, e.Name)
		}
	}
	return sorted
}

const inventoryHead = `# The test cases by folder, and the databases that each runs on; those in parentheses only if
# ROWFEED_TEST_ALL is 1. "go run ./internal/test/cases" adds cases. Nothing is removed: moved.txt says where a case is
# now.
`

func formatInventory(cases []Case) string {
	var b strings.Builder
	b.WriteString(inventoryHead)
	at := ""
	for _, c := range cases {
		if c.Folder != at {
			at = c.Folder
			b.WriteString("\n" + at + "\n")
		}
		b.WriteString(strings.TrimRight("\t"+c.Name+" "+c.databases(), " ") + "\n")
	}
	return b.String()
}

// databases lists where the case runs: "sqlite mariadb (mysql)".
func (c Case) databases() string {
	text := strings.Join(c.On, " ")
	if len(c.WithAll) > 0 {
		text = strings.TrimSpace(text + " (" + strings.Join(c.WithAll, " ") + ")")
	}
	return text
}

func parseInventory(text string) (cases []Case, err error) {
	at := ""
	for n, line := range strings.Split(text, "\n") {
		indented := strings.HasPrefix(line, "\t")
		switch line = strings.TrimSpace(line); {
		case line == "" || strings.HasPrefix(line, "#"):
		case !indented:
			at = line
		case at == "":
			return nil, fmt.Errorf("%s:%d: no folder precedes %q", inventoryFile, n+1, line)
		default:
			on, withAll, _ := strings.Cut(line, "(")
			fields := strings.Fields(on)
			c := Case{Folder: at, Name: fields[0], On: fields[1:]}
			c.WithAll = strings.Fields(strings.TrimSuffix(withAll, ")"))
			cases = append(cases, c)
		}
	}
	return cases, nil
}
