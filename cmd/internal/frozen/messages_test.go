package frozen

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/golden"
)

// calls maps functions to the kind of message that is their first text.
var calls = map[string]string{
	"WrongUse": "error", "Invalid": "error", "PrintLine": "output", "Confirm": "output",
	"Info": "log", "Warn": "log", "Error": "log", "Debug": "log", "InfoContext": "log", "WarnContext": "log",
	"ErrorContext": "log", "DebugContext": "log",
}

// failures maps functions that make an error to the argument that says what to do next. The next argument is the cause.
var failures = map[string]int{"problem": 1, "badParameter": 1, "feedError": 2}

// TestFrozenMessages: the texts of errors, outputs and logs that a user can meet are in testdata/messages, so that they
// can be read in one sitting. The texts of --help are in cmd/rowfeed/testdata/frozen.
func TestFrozenMessages(t *testing.T) {
	const top = "../../.."
	found := map[string]bool{}
	files := token.NewFileSet()
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(top, path)
		if entry.IsDir() && (slices.Contains([]string{"internal/test", "examples", "clients", "cmd/bench",
			"cmd/internal/suite"}, filepath.ToSlash(name)) || strings.HasPrefix(entry.Name(), ".") && name != ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text := message(files, n); text != "" {
				found[text] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for text := range found {
		all = append(all, text)
	}
	if slices.Sort(all); len(all) < 500 {
		t.Fatalf("%d messages were found", len(all))
	}
	golden.Compare(t, "testdata/messages", map[string]string{"messages.txt": strings.Join(all, "\n") + "\n"})
}

// message returns the text of a node that is a message, after its kind, or "".
func message(files *token.FileSet, n ast.Node) string {
	switch n := n.(type) {
	case *ast.CompositeLit:
		fields := map[string]string{}
		for _, e := range n.Elts {
			pair, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			if key, ok := pair.Key.(*ast.Ident); ok {
				fields[key.Name], _ = words(files, pair.Value)
			}
		}
		return failure(fields["Cause"], fields["Next"])
	case *ast.CallExpr:
		name := ""
		switch f := n.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
		}
		if next, ok := failures[name]; ok && len(n.Args) > next+1 {
			cause, _ := words(files, n.Args[next+1])
			remedy, _ := words(files, n.Args[next])
			return failure(cause, remedy)
		}
		for _, arg := range n.Args {
			if text, ok := words(files, arg); ok && calls[name] != "" && strings.Contains(text, " ") {
				return calls[name] + ": " + text
			}
		}
	}
	return ""
}

// failure returns the text of an error, or "".
func failure(cause, next string) string {
	if next != "" {
		next = "Next: " + next
	}
	if text := strings.TrimPrefix(cause+". "+next, ". "); text != "" {
		return "error: " + strings.TrimSuffix(text, ". ")
	}
	return ""
}

// words returns the text of an expression: its literals, and its other parts in braces. ok says that it has a literal.
func words(files *token.FileSet, e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return strings.ReplaceAll(text, "\n", " "), true
		}
	case *ast.ParenExpr:
		return words(files, e.X)
	case *ast.BinaryExpr:
		left, one := words(files, e.X)
		right, other := words(files, e.Y)
		return left + right, one || other
	case *ast.CallExpr:
		if len(e.Args) > 0 {
			if text, ok := words(files, e.Args[0]); ok {
				return text, true
			}
		}
	}
	var b bytes.Buffer
	if err := format.Node(&b, files, e); err != nil {
		return fmt.Sprint(err), false
	}
	return "{" + strings.Join(strings.Fields(b.String()), " ") + "}", false
}
