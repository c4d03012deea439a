package lint

import (
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

//go:embed layers.txt
var layersText string

// arrow is a package, and a package or module that it imports.
type arrow struct{ from, to string }

// layers is the content of layers.txt.
type layers struct {
	rank       map[string]int      // a name's layer; higher layers have lower numbers
	only       map[string][]string // the imports that a name may have; default: all lower layers
	exceptions []arrow
	outside    []arrow
}

// parseLayers reads text of the form that layers.txt describes.
func parseLayers(text string) (layers, error) {
	l := layers{rank: map[string]int{}, only: map[string][]string{}}
	for _, section := range strings.Split(strings.ReplaceAll(text, "\\\n", ""), "\n== ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		for n, paragraph := range strings.Split(body, "\n\n") {
			for line := range strings.Lines(paragraph) {
				if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				if err := l.add(title, n, line); err != nil {
					return l, fmt.Errorf("%s: %w", line, err)
				}
			}
		}
	}
	for name, only := range l.only {
		for _, imported := range only {
			if l.rank[imported] <= l.rank[name] {
				return l, fmt.Errorf("%s may import %s, which is in no lower layer", name, imported)
			}
		}
	}
	return l, nil
}

// add adds a line of the section title. paragraph is the number of the line's paragraph in the section.
func (l *layers) add(title string, paragraph int, line string) error {
	left, right, colon := strings.Cut(line, ":")
	switch title {
	case "layers":
		for _, name := range strings.Fields(left) {
			if _, twice := l.rank[name]; twice {
				return fmt.Errorf("%s has two layers", name)
			}
			l.rank[name] = paragraph
			if colon {
				l.only[name] = strings.Fields(right)
			}
		}
	case "exceptions":
		from, to, isArrow := strings.Cut(left, "->")
		if !isArrow || strings.TrimSpace(right) == "" {
			return fmt.Errorf("an exception is: importers -> imported: reason")
		}
		l.exceptions = append(l.exceptions, arrows(from, to)...)
	case "outside":
		l.outside = append(l.outside, arrows(left, right)...)
	default:
		return fmt.Errorf("unknown section %s", title)
	}
	return nil
}

// arrows lead from each name to each other.
func arrows(from, to string) (all []arrow) {
	for _, f := range strings.Fields(from) {
		for _, t := range strings.Fields(to) {
			all = append(all, arrow{f, t})
		}
	}
	return all
}

// name returns the name of a package in the layers: its own, or the pattern that it matches.
func (l layers) name(p string) (string, bool) {
	if _, ok := l.rank[p]; ok {
		return p, true
	}
	for name := range l.rank {
		if ok, _ := path.Match(name, p); ok {
			return name, true
		}
	}
	return "", false
}

// forbids returns the reason why a package must not import another of the repository, or "".
func (l layers) forbids(a arrow) string {
	from, _ := l.name(a.from)
	to, ok := l.name(a.to)
	only, limited := l.only[from]
	switch {
	case !ok:
		return a.to + " has no layer"
	case limited && !slices.Contains(only, to) && !slices.Contains(only, a.to):
		return fmt.Sprintf("of this repository it may import only [%s]", strings.Join(only, " "))
	case l.rank[to] <= l.rank[from]:
		return a.to + " is in no lower layer"
	}
	return ""
}

// compare lists what is wrong with the imports of packages.
func (l layers) compare(packages []pkg) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	needed := map[arrow]bool{}
	for _, p := range packages {
		if _, ok := l.name(p.Path); !ok {
			say("%s has no layer: "+
				"add it to layers.txt, below all packages that import it and above all that it imports", p.Path)
			continue
		}
		for _, imported := range p.Imports {
			if below, ok := fromRoot(imported); ok {
				a := arrow{p.Path, below}
				reason := l.forbids(a)
				if reason == "" {
					continue
				}
				if needed[a] = true; !slices.Contains(l.exceptions, a) {
					say("%s imports %s: %s", a.from, a.to, reason)
				}
				continue
			}
			if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
				continue // the standard library
			}
			known := slices.IndexFunc(l.outside, func(a arrow) bool {
				return a.from == p.Path && (imported == a.to || strings.HasPrefix(imported, a.to+"/"))
			})
			if known < 0 {
				say("%s imports %s, which layers.txt does not list for it under outside", p.Path, imported)
				continue
			}
			needed[l.outside[known]] = true
		}
	}
	for _, a := range slices.Concat(l.exceptions, l.outside) {
		if !needed[a] {
			say("%s needs no permission to import %s any more: remove it from layers.txt", a.from, a.to)
		}
	}
	return wrong
}

// maxExceptions is the number of arrows that layers.txt excepts. Lower it when one is removed.
const maxExceptions = 9

// TestImportsFollowLayers compares the imports of the repository with layers.txt.
func TestImportsFollowLayers(t *testing.T) {
	l, err := parseLayers(layersText)
	if err != nil {
		t.Fatalf("layers.txt: %v", err)
	}
	if n := len(l.exceptions); n != maxExceptions {
		t.Errorf("layers.txt excepts %d arrows, maxExceptions says %d: their number only falls", n, maxExceptions)
	}
	for _, wrong := range l.compare(packages(t)) {
		t.Error(wrong)
	}
}

const exampleLayers = `
== layers
top

# A comment is no layer.
left right: low

low dialect/*

== exceptions
left -> right: left still uses what will be in low

== outside
low: example.com/a
`

// TestEachRuleOfLayersIsEnforced breaks each rule of the layers in a small tree.
func TestEachRuleOfLayersIsEnforced(t *testing.T) {
	l, err := parseLayers(exampleLayers)
	if err != nil {
		t.Fatal(err)
	}
	tree := func(change func(map[string][]string)) (all []pkg) {
		imports := map[string][]string{
			"top":  {"errors", module + "/left", module + "/dialect/x"},
			"left": {module + "/right", module + "/low"},
			"low":  {"example.com/a/b"},
		}
		change(imports)
		for p, i := range imports {
			all = append(all, pkg{Path: p, Imports: i})
		}
		return all
	}
	for _, try := range []struct {
		name   string
		change func(map[string][]string)
		want   string // of the only complaint
	}{
		{"the tree as it is to be", func(map[string][]string) {}, ""},
		{"an import upwards", func(m map[string][]string) {
			m["low"] = append(m["low"], module+"/top")
		}, "low imports top: top is in no lower layer"},
		{"an import of the same layer", func(m map[string][]string) {
			m["low"] = append(m["low"], module+"/dialect/x")
		}, "low imports dialect/x: dialect/x is in no lower layer"},
		{"an import that is not listed", func(m map[string][]string) {
			m["right"] = []string{module + "/dialect/x"}
		}, "right imports dialect/x: of this repository it may import only [low]"},
		{"an unknown package", func(m map[string][]string) { m["new"] = nil }, "new has no layer: add it"},
		{"an import of an unknown package", func(m map[string][]string) {
			m["top"] = append(m["top"], module+"/new")
		}, "top imports new: new has no layer"},
		{"an import from outside", func(m map[string][]string) {
			m["low"] = append(m["low"], "example.com/ab")
		}, "low imports example.com/ab, which"},
		{"an exception that is not needed", func(m map[string][]string) {
			m["left"] = nil
		}, "left needs no permission to import right any more: remove it"},
		{"a module that is not imported", func(m map[string][]string) {
			m["low"] = nil
		}, "low needs no permission to import example.com/a any more: remove it"},
	} {
		wrong := l.compare(tree(try.change))
		if got := strings.Join(wrong, "\n"); len(wrong) > 1 || !strings.HasPrefix(got, try.want) ||
			(got == "") != (try.want == "") {
			t.Errorf("%s: got %q, want %q", try.name, got, try.want)
		}
	}
	for text, want := range map[string]string{
		"\n== layers\na a":        "a has two layers",
		"\n== layers\na: b\nb":    "a may import b, which is in no lower layer",
		"\n== layers\na: b":       "a may import b, which is in no lower layer",
		"\n== exceptions\na -> b": "an exception is",
		"\n== further\na":         "unknown section further",
	} {
		if _, err := parseLayers(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parsing %q: got %v, want %s", text, err, want)
		}
	}
}
