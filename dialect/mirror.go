package dialect

import (
	"slices"
	"strings"
)

// Upsert implements [Spelling].Upsert for databases with ON CONFLICT.
func Upsert(table string, columns []string, rows [][]string, key []string) string {
	var set []string
	for _, c := range columns {
		if !slices.Contains(key, c) {
			set = append(set, c+" = excluded."+c)
		}
	}
	action := "NOTHING"
	if len(set) > 0 {
		action = "UPDATE SET " + strings.Join(set, ", ")
	}
	return InsertRows(table, columns, rows) + " ON CONFLICT (" + strings.Join(key, ", ") + ") DO " + action
}

// InsertRows returns an INSERT of rows, each of which is a list of expressions.
func InsertRows(table string, columns []string, rows [][]string) string {
	var b strings.Builder
	b.WriteString("INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES ")
	for i, row := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(" + strings.Join(row, ", ") + ")")
	}
	return b.String()
}
