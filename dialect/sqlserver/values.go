package sqlserver

import (
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// kinds has the kinds of the values of types. All others are text.
var kinds = map[string]feedtype.Kind{
	"bit": feedtype.Boolean, "tinyint": feedtype.Integer, "smallint": feedtype.Integer, "int": feedtype.Integer,
	"integer": feedtype.Integer, "bigint": feedtype.Integer, "decimal": feedtype.Decimal, "numeric": feedtype.Decimal,
	"money": feedtype.Decimal, "smallmoney": feedtype.Decimal, "real": feedtype.Float32, "float": feedtype.Float64,
	"binary": feedtype.Binary, "varbinary": feedtype.Binary, "image": feedtype.Binary, "rowversion": feedtype.Binary,
	"timestamp": feedtype.Binary, "hierarchyid": feedtype.Binary, "geography": feedtype.Binary,
	"geometry": feedtype.Binary, "date": feedtype.Date, "time": feedtype.Time, "datetime": feedtype.Timestamp,
	"datetime2": feedtype.Timestamp, "smalldatetime": feedtype.Timestamp, "datetimeoffset": feedtype.TimestampTZ,
	"json": feedtype.JSON, "vector": feedtype.JSON,
}

func kindOf(base string) feedtype.Kind {
	if kind, ok := kinds[base]; ok {
		return kind
	}
	return feedtype.Text
}

// baseType returns the name of a type alone: "decimal" for "decimal(10,2)".
func baseType(declared string) string {
	base, _, _ := strings.Cut(declared, "(")
	base, _, _ = strings.Cut(strings.TrimSpace(base), " ")
	return strings.ToLower(base)
}

// isExact tells whether equal values of a type have equal text. A trailing blank does not count in a comparison, under
// any collation, but a char(n) has all its blanks. Equal instants can have other offsets. 0 equals -0. Whether 0x01
// equals 0x0100 in a varbinary is to be asked of a server.
func isExact(base, collation string) bool {
	switch base {
	case "char", "nchar":
		return strings.HasSuffix(collation, "_BIN2")
	case "bit", "tinyint", "smallint", "int", "integer", "bigint", "decimal", "numeric", "money", "smallmoney",
		"binary", "uniqueidentifier", "date", "time", "datetime", "datetime2", "smalldatetime":
		return true
	}
	return false
}

// unkeyed says why a type cannot be part of a key.
func unkeyed(base, declared string) string {
	switch {
	case slices.Contains([]string{"text", "ntext", "image", "xml", "json", "vector", "geography", "geometry",
		"sql_variant"}, base):
		return "is " + base + ", and an index cannot tell its values apart"
	case strings.HasSuffix(declared, "(max)"):
		return "is " + declared + ", which cannot be indexed: give it a length"
	case base == "timestamp" || base == "rowversion":
		return "is " + base + ", which every UPDATE changes"
	}
	return ""
}

// collationOf reads the collation from a Decl. It is empty if it has none.
func collationOf(decl string) string {
	_, collation, _ := strings.Cut(decl, collateClause)
	return collation
}

const collateClause = " COLLATE "

// value is [dialect.Codec].Value. Style 121 is the text of dates and times in ISO format, style 2 shows all four
// digits of money.
func value(c dialect.Column, ref string) string {
	base := baseType(c.Type)
	switch c.Kind {
	case feedtype.Integer, feedtype.Boolean, feedtype.Float32, feedtype.Float64:
		return ref
	case feedtype.Decimal:
		if strings.HasSuffix(base, "money") {
			return "CONVERT(varchar(41), " + ref + ", 2)"
		}
		return "CONVERT(varchar(41), " + ref + ")" // drivers return bytes for a decimal
	case feedtype.Binary:
		switch base {
		case "hierarchyid", "geography", "geometry":
			return "CONVERT(varbinary(max), " + ref + ")"
		}
		return ref
	case feedtype.Date, feedtype.Time, feedtype.Timestamp:
		return "CONVERT(varchar(33), " + ref + ", 121)"
	case feedtype.TimestampTZ:
		local := strings.Replace(strings.ToLower(c.Type), "datetimeoffset", "datetime2", 1)
		return "CONVERT(varchar(33), CONVERT(" + local + ", SWITCHOFFSET(" + ref + ", 0)), 121) + '+00'"
	case feedtype.Text:
		switch base {
		case "nchar", "nvarchar", "sysname":
			return ref
		case "uniqueidentifier": // its bytes are in another order than its text
			return "CONVERT(char(36), " + ref + ")"
		case "sql_variant":
			return "CONVERT(nvarchar(4000), " + ref + ")"
		}
	}
	return "CONVERT(nvarchar(max), " + ref + ")"
}

// param is [dialect.Codec].Param. Each form has the type of the column and, for text, its collation, so that the
// column is not converted and its index is used. Drivers send text as nvarchar, also NULL for any type. Integers and
// binaries are not cut to the size of the column: a value that does not fit is no value of the column. A parameter for
// a varchar has the code page of the collation.
func param(c dialect.Column, placeholder string) string {
	base := baseType(c.Type)
	switch c.Kind {
	case feedtype.Integer:
		return "CAST(" + placeholder + " AS bigint)"
	case feedtype.Boolean:
		return "CAST(" + placeholder + " AS bit)"
	case feedtype.Float32, feedtype.Float64:
		return "CAST(" + placeholder + " AS float)"
	case feedtype.Binary:
		if base == "hierarchyid" {
			return "CAST(CAST(" + placeholder + " AS varbinary(892)) AS hierarchyid)"
		}
		return "CAST(" + placeholder + " AS varbinary(8000))"
	case feedtype.Timestamp: // datetime2 is read whatever the session's language is
		return "CAST(CAST(" + placeholder + " AS datetime2(7)) AS " + c.Type + ")"
	case feedtype.TimestampTZ:
		return "CAST(" + utc("REPLACE("+placeholder+", N'+00', N'')") + " AS " + c.Type + ")"
	case feedtype.Text:
		if base == "uniqueidentifier" {
			break
		}
		collate := ""
		if collation := collationOf(c.Decl); collation != "" {
			collate = collateClause + collation
		}
		if base == "char" || base == "varchar" { // the collation before the CAST is that of the code page
			return "CAST(" + placeholder + collate + " AS varchar(8000))"
		}
		return "CAST(" + placeholder + " AS nvarchar(4000))" + collate
	}
	return "CAST(" + placeholder + " AS " + c.Type + ")"
}

// utc is the instant of a text without offset.
func utc(text string) string { return "TODATETIMEOFFSET(CAST(" + text + " AS datetime2(7)), 0)" }

// store is [dialect.Codec].Store. Only text converts itself to the column's type: a NULL is sent as text, which
// does not become a varbinary. Text becomes money only by a CAST.
func store(c dialect.Column, placeholder string) string {
	switch c.Kind {
	case feedtype.Binary:
		return "CAST(" + placeholder + " AS varbinary(max))"
	case feedtype.Timestamp:
		return "CAST(" + placeholder + " AS datetime2(7))"
	case feedtype.TimestampTZ:
		return utc(placeholder)
	case feedtype.Decimal:
		if base := baseType(c.Type); strings.HasSuffix(base, "money") {
			return "CAST(" + placeholder + " AS " + base + ")"
		}
	}
	return placeholder
}

// insertNew is [dialect.Syntax].InsertNew. The range lock waits for an open transaction that inserts the same key. A
// duplicate key would be an error, under which a session with XACT_ABORT on loses its transaction.
func insertNew(table string, columns, values, key []string) string {
	same := make([]string, len(key))
	for i, c := range key {
		same[i] = c + " = " + values[slices.Index(columns, c)]
	}
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") SELECT " + strings.Join(values, ", ") +
		" WHERE NOT EXISTS (SELECT 1 FROM " + table + " WITH (UPDLOCK, SERIALIZABLE) WHERE " +
		strings.Join(same, " AND ") + ")"
}

// upsert is [dialect.Syntax].Upsert by MERGE. Without HOLDLOCK two transactions could insert the same key.
func upsert(table string, columns []string, rows [][]string, key []string) string {
	lists := make([]string, len(rows))
	for i, row := range rows {
		lists[i] = "(" + strings.Join(row, ", ") + ")"
	}
	var set, same, values []string
	for _, c := range columns {
		values = append(values, "s."+c)
		if slices.Contains(key, c) {
			same = append(same, "x."+c+" = s."+c)
		} else {
			set = append(set, c+" = s."+c)
		}
	}
	update := ""
	if len(set) > 0 {
		update = " WHEN MATCHED THEN UPDATE SET " + strings.Join(set, ", ")
	}
	all := strings.Join(columns, ", ")
	return "MERGE INTO " + table + " WITH (HOLDLOCK) AS x USING (VALUES " + strings.Join(lists, ", ") + ") AS s (" +
		all + ") ON " + strings.Join(same, " AND ") + update + " WHEN NOT MATCHED THEN INSERT (" + all + ") VALUES (" +
		strings.Join(values, ", ") + ");"
}
