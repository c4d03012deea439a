package feedtype

// Key holds the values of a feed's key columns, in the order of the key. A value is an int64, a string, a []byte, or
// another type that the driver accepts for the column.
type Key []any
