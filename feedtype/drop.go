package feedtype

// DropPlan is what dropping a feed does to its readers and to the tables that the feed was adopted from.
type DropPlan struct {
	// Keeps says that the positions stay in the rows of the table, so that the feed can be added again with Adopt. Head
	// is the highest position. Restart says why earlier cursors are then refused. It is empty if those from position
	// From on stay valid: readers at lower ones would miss deletes.
	Keeps      bool
	Head, From int64
	Restart    string
	// Written has one text for each value that is written into tables of the user. NotWritten has one for each value
	// that is not, with the reason. Both are empty unless the feed is handed back.
	Written, NotWritten []string
	// Interrupted says that an earlier drop was not complete: triggers, tables or rights of the feed may be left.
	Interrupted bool
	// NotHandedBack has one text for each value that handing back would write, of a feed that is dropped already or
	// whose drop was interrupted.
	NotHandedBack []string
}
