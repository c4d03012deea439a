package install

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// declared is a table of which only the columns in a spec are known.
type declared struct {
	d *dialect.Dialect
	dialect.Table
}

// column adds a column, given as name:type, to the table, and returns its name. A column that was declared before needs
// no type.
func (t *declared) column(param, text string) (string, error) {
	name, declaration, typed := strings.Cut(text, ":")
	known := t.Column(name)
	switch {
	case !typed && known != nil:
		return name, nil
	case !typed:
		return "", feedtype.Invalid(param, "%q has no type; without a server write it like id:bigint", text)
	case known != nil && !strings.EqualFold(known.Type, declaration):
		return "", feedtype.Invalid(param, "%q is given with two types, %s and %s", name, known.Type, declaration)
	case known != nil:
		return name, nil
	}
	c := t.d.KeyColumn(name, declaration)
	if err := checkDeclaration(param, name, declaration, c.Kind); err != nil {
		return "", err
	}
	t.Columns = append(t.Columns, c)
	return name, nil
}

// checkDeclaration refuses a text that is more than a column type. The printed script contains the text unchanged, so
// it could otherwise inject SQL. param is the parameter that named the column.
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
			Cause:  fmt.Sprintf("%q is not a column type: %s", declaration, what),
			Next:   `write it like id:bigint, id:numeric(10,2) or id:enum('a','b')`,
		}
	}
	if strings.TrimSpace(declaration) == "" {
		if kind == feedtype.Dynamic { // SQLite: a column may have no type
			return nil
		}
		return bad("it is empty")
	}
	depth, quote := 0, rune(0)
	for _, r := range declaration {
		switch {
		case r == '\\' || r < ' ':
			return bad("it contains a backslash or a control character")
		case quote != 0: // a doubled quote closes and reopens the text
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"' || r == '`':
			quote = r
		case r == '(':
			depth++
		case r == ')':
			if depth--; depth < 0 {
				return bad("it closes a parenthesis that it did not open")
			}
		case r == ',' && depth > 0, unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune(" _.[]", r):
		default:
			return bad(fmt.Sprintf("%q is not allowed", r))
		}
	}
	if depth != 0 || quote != 0 {
		return bad("it has no closing quote or parenthesis")
	}
	return nil
}
