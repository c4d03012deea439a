package feedtype

// Key is the values of a feed's key columns, in the key's order: int64, string,
// []byte or whatever else the driver takes for the column.
type Key []any
