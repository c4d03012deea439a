package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// attributes of the log are the same everywhere, so that a search for a consumer finds all its lines.
// docs/OPERATIONS.md describes them.
var attributes = map[string]bool{
	"feed": true, "consumer": true, "shard": true, "shard_count": true, "group": true, "owner": true, "epoch": true,
	"since": true, "error": true, "panic": true, "stack": true, "took": true, "pause": true, "at_most": true,
	"doing": true, "attempt": true, "changes": true, "keys": true, "head": true, "entries": true, "vanished": true,
	"accepted": true, "rejected": true, "address": true, "publishing": true, "tls": true, "path": true, "status": true,
	"state": true, "certificate_ends": true, "actor": true, "act": true, "object": true, "client": true,
	"key": true, "position": true, "attempts": true, "omitted": true,
}

var logging = regexp.MustCompile(`^(Debug|Info|Warn|Error|Log)(Context)?$`)

// TestLogLinesHaveOnlyKnownAttributes: every line of the log has only attributes of these names, in pairs, and a
// constant text.
func TestLogLinesHaveOnlyKnownAttributes(t *testing.T) {
	known := map[string]bool{}
	lines := 0
	for _, p := range packages(t) {
		for _, file := range p.GoFiles {
			files := token.NewFileSet()
			parsed, err := parser.ParseFile(files, filepath.Join(p.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				method, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !logging.MatchString(method.Sel.Name) || !isLog(method.X) {
					return true
				}
				lines++
				args := call.Args
				switch {
				case method.Sel.Name == "Log":
					args = args[2:]
				case strings.HasSuffix(method.Sel.Name, "Context"):
					args = args[1:]
				}
				if args = args[1:]; call.Ellipsis.IsValid() {
					return true // defined nearby, see below
				}
				for i := 0; i < len(args); i += 2 {
					check(t, files, args[i], known)
				}
				if len(args)%2 != 0 {
					t.Errorf("%s: a name without a value", files.Position(call.Pos()))
				}
				return true
			})
			ast.Inspect(parsed, func(n ast.Node) bool { // attributes := []any{…}, append(attributes, …)
				switch n := n.(type) {
				case *ast.AssignStmt:
					if list, ok := n.Rhs[0].(*ast.CompositeLit); ok && isNamed(n.Lhs[0], "attributes") {
						for i := 0; i < len(list.Elts); i += 2 {
							check(t, files, list.Elts[i], known)
						}
					}
				case *ast.CallExpr:
					if isNamed(n.Fun, "append") && len(n.Args) > 1 && isNamed(n.Args[0], "attributes") &&
						strings.Contains(p.Path, "cmd/rowfeed") {
						for i := 1; i < len(n.Args); i += 2 {
							check(t, files, n.Args[i], known)
						}
					}
				}
				return true
			})
		}
	}
	if lines < 20 {
		t.Errorf("only %d lines of log were found: is the pattern still right?", lines)
	}
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "OPERATIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range known {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/OPERATIONS.md does not describe the attribute %s", name)
		}
	}
}

// isLog tells whether an expression is called log or Log, or is a field of that name.
func isLog(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return strings.EqualFold(x.Name, "log")
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "log")
	}
	return false
}

func isNamed(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}

func check(t *testing.T, files *token.FileSet, x ast.Expr, known map[string]bool) {
	t.Helper()
	literal, ok := x.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return // of another kind: tracing's, or a value
	}
	name, _ := strconv.Unquote(literal.Value)
	if known[name] = true; !attributes[name] {
		t.Errorf("%s: the attribute %q is none of those that logs have: "+
			"use one of them, or add it there and to docs/OPERATIONS.md", files.Position(x.Pos()), name)
	}
}
