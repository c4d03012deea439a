package frozen

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/internal/test/golden"
)

// calls maps functions to the kind of message that is their first text. Texts of the kind "" are not collected: --help
// has its own files, and panics are for developers.
var calls = map[string]string{
	"WrongUse": "error", "Invalid": "error", "PrintLine": "output", "Confirm": "output",
	"Info": "log", "Warn": "log", "Error": "log", "Debug": "log", "InfoContext": "log", "WarnContext": "log",
	"ErrorContext": "log", "DebugContext": "log", "panic": "", "NewGroup": "",
}

// failures maps functions that make an error to the argument that says what to do next. The next argument is the cause.
var failures = map[string]int{"problem": 1, "badParameter": 1, "feedError": 2}

// others are folders and files without text for users, or with text that other golden files have.
var others = []string{"internal/test", "examples", "clients", "cmd/bench", "cmd/internal/bench", "cmd/internal/faults",
	"cmd/internal/protocoltest", "cmd/internal/suite", "cmd/sink/sinktest", "cmd/rowfeed/bench.go"}

var (
	prose    = regexp.MustCompile(`\p{Ll}{2,}[,:;]? \p{Ll}{2,}`)
	blanks   = regexp.MustCompile(`\s+`)
	braces   = regexp.MustCompile(`\{[^{}]*\}`)
	inSQL    = regexp.MustCompile(`'((?:[^'\n]|'')+)'|printf "([^"]+)"`)
	inScript = regexp.MustCompile("\"([^\"\n]+)\"|`([^`]+)`")
	inPage   = regexp.MustCompile(`>([^<>]+)<|(?:aria-label|placeholder|title)="([^"]+)"`)
	inline   = regexp.MustCompile(`</?(?:a|b|bdi|code|span|strong)(?: [^<>]*)?>`)
	comment  = regexp.MustCompile(`(?m)^\s*(?:--|//).*|\s--\s.*`)
)

// TestFrozenMessages: the texts that a user can meet are in testdata/messages, so that they can be read in one sitting.
// The texts of --help are in cmd/rowfeed/testdata/frozen.
func TestFrozenMessages(t *testing.T) {
	const top = "../../.."
	in := source{token.NewFileSet(), map[string]bool{}, map[ast.Expr]bool{}}
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(top, path)
		other := slices.Contains(others, filepath.ToSlash(name))
		if entry.IsDir() && (other || strings.HasPrefix(entry.Name(), ".") && name != ".") {
			return fs.SkipDir
		}
		if other || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(in.files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, in.visit)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	reference, err := config.Reference()
	if err != nil {
		t.Fatal(err)
	}
	const assets = top + "/cmd/console/assets/"
	pages := texts(t, assets+"*.html", inPage)
	maps.Copy(pages, texts(t, assets+"*.js", inScript))
	golden.Compare(t, "testdata/messages", map[string]string{
		"messages.txt": lines(t, in.found, 1500),
		"sql.txt":      lines(t, texts(t, top+"/dialect/*/*.sql", inSQL), 40),
		"console.txt":  lines(t, pages, 100),
		"config.txt":   reference,
	})
}

// texts returns the prose in the files of a pattern. Each of its parts is a group of the expression.
func texts(t *testing.T, pattern string, parts *regexp.Regexp) map[string]bool {
	found := map[string]bool{}
	paths, err := filepath.Glob(pattern)
	for _, path := range paths {
		content, failed := os.ReadFile(path)
		if err = errors.Join(err, failed); strings.HasSuffix(path, ".html") {
			content = inline.ReplaceAll(content, nil)
		}
		for _, groups := range parts.FindAllStringSubmatch(comment.ReplaceAllString(string(content), ""), -1) {
			if text := strings.Join(groups[1:], ""); isProse(text) {
				found[strings.TrimSpace(blanks.ReplaceAllString(text, " "))] = true
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func isProse(text string) bool { return prose.MatchString(braces.ReplaceAllString(text, "")) }

// lines returns sorted lines. It fails if there are fewer than there must be.
func lines(t *testing.T, found map[string]bool, least int) string {
	if len(found) < least {
		t.Fatalf("%d texts were found, and there must be %d", len(found), least)
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), "\n") + "\n"
}

// source collects the texts of Go files.
type source struct {
	files *token.FileSet
	found map[string]bool
	seen  map[ast.Expr]bool // what is part of a text
}

// visit adds the text of a node after its kind: error, log, output, or text for any other prose.
func (s source) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit:
		fields := map[string]string{}
		for _, e := range n.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				switch key := fmt.Sprint(pair.Key); key {
				case "Cause", "Next", "Use", "Short", "Long", "Example":
					fields[key], _ = s.words(pair.Value)
				}
			}
		}
		s.failure(fields["Cause"], fields["Next"])
	case *ast.CallExpr:
		name := ""
		switch f := n.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
		}
		kind, known := calls[name]
		next, failed := failures[name]
		switch {
		case failed && len(n.Args) > next+1:
			cause, _ := s.words(n.Args[next+1])
			remedy, _ := s.words(n.Args[next])
			s.failure(cause, remedy)
		case known, strings.Contains(name, "Var"): // a flag
			for _, arg := range n.Args {
				if text, ok := s.words(arg); ok && kind != "" && strings.Contains(text, " ") {
					s.found[kind+": "+text] = true
					break
				}
			}
		}
	case ast.Expr:
		if s.seen[n] {
			break
		}
		switch n.(type) {
		case *ast.BasicLit, *ast.BinaryExpr:
			if text, ok := s.words(n); ok && isProse(text) {
				s.found["text: "+text] = true
			}
		}
	}
	return true
}

// failure adds the text of an error.
func (s source) failure(cause, next string) {
	if next != "" {
		next = "Next: " + next
	}
	if text := strings.TrimPrefix(cause+". "+next, ". "); text != "" {
		s.found["error: "+strings.TrimSuffix(text, ". ")] = true
	}
}

// words returns the text of an expression: its literals, and its other parts in braces. ok says that it has a literal.
func (s source) words(e ast.Expr) (text string, ok bool) {
	s.seen[e] = true
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return blanks.ReplaceAllString(text, " "), true
		}
	case *ast.ParenExpr:
		return s.words(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, one := s.words(e.X)
			right, other := s.words(e.Y)
			return left + right, one || other
		}
	case *ast.CallExpr:
		if len(e.Args) > 0 {
			if text, ok := s.words(e.Args[0]); ok {
				return text, true
			}
		}
	}
	var b bytes.Buffer
	if err := format.Node(&b, s.files, e); err != nil {
		return fmt.Sprint(err), false
	}
	return "{" + strings.Join(strings.Fields(b.String()), " ") + "}", false
}
