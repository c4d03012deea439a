package install

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/rowfeed/rowfeed/feedtype"
)

// checkDeclaration refuses what is no type alone: a declaration stands in the printed
// script as it was given, and could hold anything. param names what the column is for.
func checkDeclaration(param, name, declaration string, kind feedtype.Kind) error {
	object := strings.ReplaceAll(param, "-", " ")
	if param == "key" {
		object = "key column"
	}
	bad := func(what string) error {
		return &feedtype.Error{
			Code:   feedtype.InvalidRequest,
			Param:  param,
			Object: fmt.Sprintf("%s %q", object, name),
			Cause:  fmt.Sprintf("%q is no type of a column: %s", declaration, what),
			Next:   `write it like id:bigint, id:numeric(10,2) or id:enum('a','b')`,
		}
	}
	if strings.TrimSpace(declaration) == "" {
		if kind == feedtype.Dynamic { // a column may have no type there
			return nil
		}
		return bad("it is empty")
	}
	depth, quote := 0, rune(0)
	for _, r := range declaration {
		switch {
		case r == '\\' || r < ' ':
			return bad("a backslash or control character is in it")
		case quote != 0: // a doubled quote ends the text and begins it again
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"' || r == '`':
			quote = r
		case r == '(':
			depth++
		case r == ')':
			if depth--; depth < 0 {
				return bad("a parenthesis is closed that was not opened")
			}
		case r == ',' && depth > 0, unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune(" _.[]", r):
		default:
			return bad(fmt.Sprintf("a %q has no place there", r))
		}
	}
	if depth != 0 || quote != 0 {
		return bad("it lacks a closing quote or parenthesis")
	}
	return nil
}
