package dialect

import (
	"slices"
	"strings"
)

// Upsert is [Spelling].Upsert where there is ON CONFLICT.
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

// InsertRows is an INSERT of rows.
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
