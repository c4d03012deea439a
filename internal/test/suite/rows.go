package suite

import (
	"fmt"
	"strings"
)

// List returns the rows of a query as text, with a blank between their columns.
func (x *Env) List(query string) (all []string) {
	x.Helper()
	rows, err := x.DB.Admin().QueryContext(x.Ctx, x.Has.Spell(query))
	if err != nil {
		x.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		x.Fatal(err)
	}
	for rows.Next() {
		values, dest := make([]any, len(columns)), make([]any, len(columns))
		for i := range dest {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			x.Fatal(err)
		}
		var texts []string
		for _, v := range values {
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			texts = append(texts, fmt.Sprint(v))
		}
		all = append(all, strings.Join(texts, " "))
	}
	if err := rows.Err(); err != nil {
		x.Fatal(err)
	}
	return all
}
