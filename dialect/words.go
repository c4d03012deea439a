package dialect

import (
	"cmp"
	"maps"
	"strconv"
	"strings"
	"text/template"
)

func functions(s *Syntax, n Names) template.FuncMap {
	return template.FuncMap{
		"table":     func(base string) string { return Qualified(s, n.Table(base)) },
		"own_index": func(base string) string { return s.Quote(n.Table(base).Name) },
		"now":       func() string { return s.Now },
		"quote":     func(name string) string { return s.Quote(name) },
		"literal":   func(text string) string { return s.Literal(text) },
		"insert_new": func(base, columns, values, key string) string {
			return s.InsertNew(Qualified(s, n.Table(base)), elements(columns), elements(values), elements(key))
		},
		"limit": func(rows string) string { return s.limited(rows) },
		"uncut": func(rows string) string {
			if s.DrawsUncut {
				return ""
			}
			return s.atMost(rows)
		},
		"at_most": func(rows string) string { return s.atMost(rows) },
		"count":   func() string { return cmp.Or(s.Count, "count(*)") },
		"skip": func(rows string) string {
			if s.Skip != nil {
				return s.Skip(rows)
			}
			return "LIMIT 1 OFFSET " + rows
		},
	}
}

// elements cuts a list at its commas, except for those in parentheses.
func elements(list string) (all []string) {
	depth, from := 0, 0
	for i, c := range list + "," {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			all, from = append(all, strings.TrimSpace(list[from:i])), i+1
		}
	}
	return all
}

// words are the words of statements about the feed:
//
//	{{source}} {{changes}} {{positions}} {{batch}} {{records}} {{places}}   its tables
//	{{sequence}}              a table with the row of its sequence (name, value, term, updated_at), maybe among
//	                          those of other feeds: see [Feed.sequence]
//	{{object "insert"}}       the quoted name of one of its triggers or indexes
//	{{routine "capture"}}     the name of one of its functions, with the schema
//	{{feed}}                  its name, as a literal
//	{{key}} {{key "c"}}       the key columns of a row of one of rowfeed's tables: "id"; c."id"
//	{{row}} {{row "t"}}       the key columns of a row of the source
//	{{ordered "t"}}           the same, as they are compared and ordered
//	{{one_of_key "c"}}        the first of the key columns, which is NULL only if a join found no row
//	{{one_of_row "t"}}
//	{{same_rows "a" "b"}}     the condition that two rows of the source have the same key, with the operator <=>
//	{{same_key "a" "b"}}      the condition that rows of two of rowfeed's tables have the same key
//	{{row_of "t" "c"}}        the condition that row t of the source has the key of row c of one of rowfeed's tables
//	{{numbered_row "t"}}      the key columns of a row of the source under the names k0, k1 and so on
//	{{numbered_key "c"}}      the same of a row of one of rowfeed's tables
//	{{numbered "x"}}          these names: x.k0, x.k1
//	{{uncut_in_order "t" ":all"}}   behind a query for rows of the source, which a statement records: the order of
//	                          their keys, and a limit that cuts nothing off; empty with [Syntax].DrawsUncut
//	{{order_of_draws "x"}}    behind the statement that records them: the order by x.k0, x.k1 with [Syntax].DrawsUncut
//	{{has_key "t"}}           that a row of the source has no NULL in its key; empty if it cannot have one
//	{{row_as_key "r"}}        the key columns of a row of the source under the names that rowfeed's tables have
//	{{key_is_numbered "p" "x"}}   the condition that a row of one of rowfeed's tables has the key x.k0, x.k1
//	{{read_key "c"}} {{read_row "t"}} {{read_numbered "x"}}   the same columns as [Syntax].Value reads them
//	{{values "p" "t"}}        what a page reads of an entry, as [Syntax].Value reads it: the key columns of row p of
//	                          one of rowfeed's tables, and the feed's columns of row t of the source
//	{{numbered_values "g" "t"}}   the same under the names v0, v1 and so on; of a blocking feed, g is of the source
//	{{value_names "p"}}       these names: p.v0, p.v1
//	{{ulids}}                 the table whose rows hold the ULIDs: the source of a blocking feed, or the places
//	{{ulid "g"}} {{shard "g"}}   its columns of ULIDs and of shards
//	{{read_ulid "g"}}         the ULID as [Syntax].Value reads it
//	{{declared_key}}          the key columns as rowfeed's tables declare them
//	{{bucket "j.shard" "/"}}  the bucket of a data shard, given the operator that divides integers
//	{{own_shard "t"}}         the data shard that a row of the source holds in its own column, or -1: [Feed].OwnShard
//	{{shard_of_key "c"}}      the same of the row with the key of row c of one of rowfeed's tables; -1 without a row
//	{{shard_of_row "t"}}      the data shard of a row: own_shard, or the one that a publisher has written into the row
//	{{shard_name}}            the name of either column
//
// The dot is the feed itself, for {{if .Outbox}}.
func (f *Feed) words(s *Syntax) template.FuncMap {
	refs := func(of func(*Syntax, *Feed, string) []string) func(...string) string {
		return func(alias ...string) string {
			return strings.Join(of(s, f, strings.Join(alias, "")), ", ")
		}
	}
	numbered := func(_ *Syntax, f *Feed, alias string) []string {
		names := make([]string, len(f.Key))
		for i := range names {
			names[i] = alias + ".k" + strconv.Itoa(i)
		}
		return names
	}
	number := func(columns []string) string {
		for i := range columns {
			columns[i] += " AS k" + strconv.Itoa(i)
		}
		return strings.Join(columns, ", ")
	}
	read := func(of func(*Syntax, *Feed, string) []string) func(...string) string {
		return func(alias ...string) string {
			return strings.Join(keyValues(s, f.Key, of(s, f, strings.Join(alias, ""))), ", ")
		}
	}
	words := f.valueWords(s)
	maps.Copy(words, template.FuncMap{
		"numbered":      refs(numbered),
		"read_key":      read(StoredRefs),
		"read_row":      read(KeyRefs),
		"read_numbered": read(numbered),
		"numbered_row":  func(alias string) string { return number(KeyRefs(s, f, alias)) },
		"numbered_key":  func(alias string) string { return number(StoredRefs(s, f, alias)) },
		"row_as_key": func(alias string) string {
			return Pairwise(KeyRefs(s, f, alias), StoredRefs(s, f, ""), " AS ", ", ")
		},
		"uncut_in_order": func(alias, rows string) string {
			if s.DrawsUncut {
				return ""
			}
			return "ORDER BY " + strings.Join(OrderedKey(s, f, alias), ", ") + " " + s.limited(rows)
		},
		"order_of_draws": func(alias string) string {
			if !s.DrawsUncut {
				return ""
			}
			return "ORDER BY " + strings.Join(numbered(s, f, alias), ", ")
		},
		"same_rows": func(a, b string) string {
			return Pairwise(KeyRefs(s, f, a), KeyRefs(s, f, b), " <=> ", " AND ")
		},
		"key_is_numbered": func(own, alias string) string {
			return EqualKeys(f, StoredRefs(s, f, own), numbered(s, f, alias))
		},
		"source":    func() string { return Qualified(s, f.Source) },
		"sequence":  func() string { return f.sequence(s) },
		"changes":   func() string { return Qualified(s, f.Changes()) },
		"positions": func() string { return Qualified(s, f.Positions()) },
		"batch":     func() string { return Qualified(s, f.Batch()) },
		"records":   func() string { return Qualified(s, f.Records()) },
		"places":    func() string { return Qualified(s, f.Placed()) },
		"object":    func(suffix string) string { return s.Quote(f.Object(suffix)) },
		"routine":   func(suffix string) string { return Qualified(s, f.Routine(suffix)) },
		"feed":      func() string { return s.Literal(f.Name) },
		"key":       refs(StoredRefs),
		"row":       refs(KeyRefs),
		"ordered":   refs(OrderedKey),
		"has_key": func(alias string) string {
			var conditions []string
			for i, ref := range KeyRefs(s, f, alias) {
				if f.Key[i].MayBeNull {
					conditions = append(conditions, ref+" IS NOT NULL")
				}
			}
			return strings.Join(conditions, " AND ")
		},
		"one_of_key": func(alias string) string { return Ref(s, alias, f.Key[0].Stored) },
		"one_of_row": func(alias string) string { return Ref(s, alias, f.Key[0].Name) },
		"same_key":   func(a, b string) string { return StoredJoin(s, f, a, b) },
		"row_of":     func(src, own string) string { return SourceJoin(s, f, src, own) },
		"bucket":     func(shard, div string) string { return f.Bucket(shard, div) },
		"own_shard":  func(alias string) string { return f.shardOfRow(s, alias) },
		"shard_of_key": func(alias string) string {
			return "COALESCE((SELECT " + f.shardOfRow(s, "r") + " FROM " + Qualified(s, f.Source) + " r WHERE " +
				SourceJoin(s, f, "r", alias) + "), -1)"
		},
		"shard_of_row": func(alias string) string {
			if f.OwnShard != "" {
				return f.shardOfRow(s, alias)
			}
			return "COALESCE(" + alias + ".shard, 0)"
		},
		"shard_name": func() string {
			if f.OwnShard != "" {
				return s.Quote(f.OwnShard)
			}
			return ShardColumn
		},
		"declared_key": func() string {
			decls := make([]string, len(f.Key))
			for i, c := range f.Key {
				decls[i] = strings.TrimSpace(s.Quote(c.Stored)+" "+c.Decl) + " NOT NULL" + c.Collate
			}
			return strings.Join(decls, ",\n  ")
		},
	})
	return words
}

// sequence is rowfeed's table of sequences. While another publisher gives the positions it is a query for the row of
// that publisher's sequence, which answers no row once rowfeed has taken over: what a statement shows then comes from
// the record, or from no other state of the feed. Such positions have no term.
func (f *Feed) sequence(s *Syntax) string {
	if f.Elsewhere == nil {
		return Qualified(s, f.Names.Table("sequences"))
	}
	return "(SELECT e.name, q.value, 0 AS term, 0 AS updated_at FROM " + Qualified(s, f.Names.Table("feeds")) +
		" e JOIN " + Qualified(s, f.Elsewhere.Table) + " q ON q.name = " + s.Literal(f.Elsewhere.Name) +
		" WHERE e.name = " + s.Literal(f.Name) + " AND e.state = " + s.Literal(StateElsewhere) + ")"
}

// valueWords are the words for what is read of an entry, and for ULIDs.
func (f *Feed) valueWords(s *Syntax) template.FuncMap {
	values := func(own, src string) []string {
		key := StoredRefs(s, f, own)
		if f.ULIDs != nil && !f.Outbox {
			key = KeyRefs(s, f, own)
		}
		read := keyValues(s, f.Key, key)
		for _, c := range f.Columns {
			read = append(read, s.Value(c, Ref(s, src, c.Name)))
		}
		return read
	}
	return template.FuncMap{
		"values": func(own, src string) string { return strings.Join(values(own, src), ", ") },
		"numbered_values": func(own, src string) string {
			read := values(own, src)
			for i := range read {
				read[i] += " AS v" + strconv.Itoa(i)
			}
			return strings.Join(read, ", ")
		},
		"value_names": func(alias string) string {
			names := make([]string, len(f.Key)+len(f.Columns))
			for i := range names {
				names[i] = alias + ".v" + strconv.Itoa(i)
			}
			return strings.Join(names, ", ")
		},
		"ulids": func() string { return Qualified(s, f.ULIDTable()) },
		"ulid":  func(alias string) string { return Ref(s, alias, f.ULIDs.Position.Name) },
		"shard": func(alias string) string { return Ref(s, alias, f.ULIDs.Shard.Name) },
		"read_ulid": func(alias string) string {
			return s.Value(f.ULIDs.Position, Ref(s, alias, f.ULIDs.Position.Name))
		},
	}
}
