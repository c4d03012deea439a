package install

import (
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// parseTable splits "schema.table". Names that contain dots are in double quotes.
func parseTable(text string) (feedtype.TableName, error) {
	var parts []string
	for rest := text; ; {
		var part string
		if strings.HasPrefix(rest, `"`) {
			end := 1
			for end < len(rest) && (rest[end] != '"' || strings.HasPrefix(rest[end:], `""`)) {
				if rest[end] == '"' {
					end++
				}
				end++
			}
			if end >= len(rest) {
				return feedtype.TableName{}, feedtype.Invalid("table", "%s lacks a closing quote", text)
			}
			part, rest = strings.ReplaceAll(rest[1:end], `""`, `"`), rest[end+1:]
			if rest != "" && rest[0] != '.' {
				return feedtype.TableName{}, feedtype.Invalid("table", `%s: expected "." after a quoted name`, text)
			}
		} else if i := strings.IndexByte(rest, '.'); i >= 0 {
			part, rest = rest[:i], rest[i:]
		} else {
			part, rest = rest, ""
		}
		if part == "" {
			return feedtype.TableName{}, feedtype.Invalid("table", "%q has an empty name", text)
		}
		parts = append(parts, part)
		if rest == "" {
			break
		}
		rest = rest[1:]
	}
	switch len(parts) {
	case 1:
		return feedtype.TableName{Name: parts[0]}, nil
	case 2:
		return feedtype.TableName{Schema: parts[0], Name: parts[1]}, nil
	}
	return feedtype.TableName{}, feedtype.Invalid("table",
		`%q has %d parts, not schema.table; write names that hold dots as "schema"."table"`, text, len(parts))
}

// uniqueOn returns the unique index on exactly these columns, or nil.
func uniqueOn(table *dialect.Table, names []string) *dialect.Index {
	want := slices.Sorted(slices.Values(names))
	for i, ix := range table.Unique {
		if have, ok := ix.Names(); ok && !ix.Partial && slices.Equal(slices.Sorted(slices.Values(have)), want) {
			return &table.Unique[i]
		}
	}
	return nil
}

// attachedOf returns the table's partitions that hold rows themselves, sorted.
func attachedOf(table *dialect.Table) []string {
	var all []string
	for _, p := range table.Partitions {
		if p.Attached != "" {
			all = append(all, p.Attached)
		}
	}
	slices.Sort(all)
	return all
}

// hasPartitions tells whether the feed follows partitions.
func hasPartitions(r *catalog.FeedRecord, table *dialect.Table) bool {
	return r.Capture == feedtype.CaptureTrigger && r.State != catalog.StateCreating &&
		(r.Partitions != nil || table != nil && len(table.Partitions) > 0)
}
