package mysql

import (
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// kindOf returns the kind of a type's values. dataType is the type's name without its size.
func kindOf(dataType string) feedtype.Kind {
	switch strings.ToLower(dataType) {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year":
		return feedtype.Integer
	case "decimal":
		return feedtype.Decimal
	case "float":
		return feedtype.Float32
	case "double":
		return feedtype.Float64
	case "date":
		return feedtype.Date
	case "time":
		return feedtype.Time
	case "datetime":
		return feedtype.Timestamp
	case "timestamp":
		return feedtype.TimestampTZ
	case "json": // MySQL's type; MariaDB's is a longtext
		return feedtype.JSON
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector",
		"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
		"geometrycollection", "geomcollection":
		return feedtype.Binary
	}
	return feedtype.Text // char, text, enum, set, and MariaDB's uuid, inet4, inet6
}

// baseType returns the name of a column's type alone: "decimal" for "decimal(10,2) unsigned".
func baseType(columnType string) string {
	i := strings.IndexAny(columnType, "( ")
	if i < 0 {
		i = len(columnType)
	}
	return strings.ToLower(columnType[:i])
}

// charsetOf reads character set and collation from a Decl. They are empty if it has none.
func charsetOf(decl string) (charset, collation string) {
	_, rest, ok := strings.Cut(decl, charsetClause)
	if !ok {
		return "", ""
	}
	charset, collation, _ = strings.Cut(rest, " COLLATE ")
	return charset, collation
}

const charsetClause = " CHARACTER SET "

// utf8Bytes are the character sets whose bytes are delivered as they are. Those of binary need not be UTF-8:
// the callers mark values that are not.
var utf8Bytes = map[string]bool{"utf8mb4": true, "utf8mb3": true, "utf8": true, "ascii": true, "binary": true}

// asBytes makes every driver return []byte, in the text protocol and in the binary one. It also keeps the
// server from converting to the connection's character set: IF of a string and a binary string is a binary
// string. Simpler forms are wrong on MariaDB. CAST(x AS BINARY) is NULL above max_allowed_packet. CONVERT(x
// USING binary) counts characters as bytes, so a sort cuts the value.
func asBytes(expr string) string { return "IF(TRUE, " + expr + ", CAST('' AS BINARY))" }

// value is [dialect.Codec].Value. A CHAR stores no trailing blanks. RTRIM removes those that the sql_mode
// PAD_CHAR_TO_FULL_LENGTH adds.
func value(c dialect.Column, ref string) string {
	if baseType(c.Type) == "char" {
		ref = "RTRIM(" + ref + ")"
	}
	switch c.Kind {
	case feedtype.Integer:
		if base := baseType(c.Type); base == "bit" || base == "year" {
			return "CAST(" + ref + " AS UNSIGNED)" // drivers return bytes for a BIT
		}
		return ref
	case feedtype.Float32, feedtype.Float64:
		// The product is a DOUBLE without declared digits. A FLOAT is shown with six digits, and a DOUBLE(M,D)
		// in the text protocol with D decimals. It is times one, not plus zero, which would lose the sign of
		// -0.
		return ref + " * 1e0"
	case feedtype.Binary:
		return ref
	case feedtype.TimestampTZ:
		// UNIX_TIMESTAMP of a bare column reads what is stored, without the session's time zone. It is 0 only
		// for the zero timestamp: a TIMESTAMP begins one second after the epoch.
		seconds := "UNIX_TIMESTAMP(" + ref + ")"
		return "CASE " + seconds + " WHEN 0 THEN " + asBytes("'"+zeroTimestamp+"'") + " ELSE " +
			asBytes(seconds) + " END"
	case feedtype.Text:
		if charset, _ := charsetOf(c.Decl); charset != "" && !utf8Bytes[charset] {
			return asBytes("CONVERT(" + ref + " USING utf8mb4)")
		}
	case feedtype.JSON:
		return asBytes("CAST(" + ref + " AS CHAR CHARACTER SET utf8mb4)")
	}
	return asBytes(ref)
}

// zeroTimestamp is delivered as 0000-00-00T00:00:00Z.
const zeroTimestamp = "0000-00-00 00:00:00+00"

// param is [dialect.Codec].Param. Each form has the type of the column and, for text, its collation. So a
// comparison uses the column's index and order, whatever type the driver or the DSN (interpolateParams,
// charset) gives the placeholder.
func param(c dialect.Column, placeholder string) string {
	base := baseType(c.Type)
	switch c.Kind {
	case feedtype.Integer:
		// Not AS UNSIGNED: MySQL would take the placeholder for a signed number.
		return "CAST(" + placeholder + " AS DECIMAL(20,0))"
	case feedtype.Float32, feedtype.Float64:
		return "(" + placeholder + " + 0e0)"
	case feedtype.Decimal:
		// A string would be compared as a double.
		size, _, _ := strings.Cut(c.Type, ")")
		return "CAST(" + placeholder + " AS " + size + "))"
	case feedtype.Date:
		// A number, because MySQL refuses '0000-00-00' in comparisons.
		return "CAST(REPLACE(" + placeholder + ", '-', '') AS UNSIGNED)"
	case feedtype.Timestamp:
		return "CAST(REPLACE(REPLACE(REPLACE(" + placeholder + ", '-', ''), ' ', ''), ':', '') AS DECIMAL(20,6))"
	case feedtype.Time:
		return "CAST(" + placeholder + " AS TIME(6))"
	case feedtype.Binary:
		return "CAST(" + placeholder + " AS BINARY)"
	case feedtype.Text:
		// The bytes are UTF-8, whatever the connection's character set is.
		text := "CONVERT(CAST(" + placeholder + " AS BINARY) USING utf8mb4)"
		if base == "enum" {
			// An enum is ordered by its number, so the comparison uses the number. Compared as text, a batch
			// between two keys could have any size.
			members := c.Type[strings.Index(c.Type, "(")+1 : strings.LastIndex(c.Type, ")")]
			return "FIELD(" + text + " COLLATE utf8mb4_bin, " + members + ")"
		}
		charset, collation := charsetOf(c.Decl)
		if charset == "" {
			return text
		}
		if charset != "utf8mb4" {
			text = "CONVERT(" + text + " USING " + charset + ")"
		}
		return text + " COLLATE " + collation
	}
	return placeholder
}

// insertNew is [dialect.Syntax].InsertNew with INSERT IGNORE. For a row that exists already, the rows affected
// are then 0, whatever the driver's clientFoundRows. IGNORE also cuts values that are too long, so rowfeed
// checks their lengths before.
func insertNew(table string, columns, values, _ []string) string {
	return "INSERT IGNORE INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" +
		strings.Join(values, ", ") + ")"
}

// upsert is [dialect.Syntax].Upsert. ON DUPLICATE KEY finds a row by any of its unique indexes, and cannot
// be limited to one. So the statement also sets the key columns. A row with the same value in another unique
// index becomes the new row, as if it had been deleted first. Without that, it would get the values of another
// key. VALUES is deprecated on MySQL, but MariaDB has no other form.
func upsert(table string, columns []string, rows [][]string, _ []string) string {
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = VALUES(" + c + ")"
	}
	return dialect.InsertRows(table, columns, rows) + " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
}

// store is [dialect.Codec].Store. A TIMESTAMP is written in the session's time zone. There, the last hour
// of summer time has the same clock times as the first hour of winter time. All other instants are exact.
func store(c dialect.Column, placeholder string) string {
	if c.Kind == feedtype.TimestampTZ {
		return "CONVERT_TZ(CAST(" + placeholder + " AS DATETIME(6)), '+00:00', @@session.time_zone)"
	}
	return placeholder
}
