package catalog

import (
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// ParseTable splits "schema.table". Names that contain dots are in double quotes.
func ParseTable(text string) (feedtype.TableName, error) {
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
				return feedtype.TableName{}, feedtype.Invalid("table", "%s has no closing quote", text)
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

// SequenceRow parses TABLE or TABLE:NAME. Without a name it is the row with the feed's name.
func SequenceRow(feed, from string) (table feedtype.TableName, name string, err error) {
	text, name, named := strings.Cut(from, ":")
	if !named {
		name = feed
	}
	table, err = ParseTable(text)
	return table, name, err
}
