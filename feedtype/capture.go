package feedtype

// Capture is how changes reach changes_<feed>.
type Capture string

const (
	// CaptureTrigger records changes by row-level triggers.
	CaptureTrigger Capture = "trigger"
	// CaptureApp leaves it to the writers to record changes.
	CaptureApp Capture = "app"
	// CaptureColumn keeps each row's position in the row: writers set it to NULL in the
	// statement of their change.
	CaptureColumn Capture = "column"
	// CaptureNone records nothing: rows that are only appended hold their positions.
	CaptureNone Capture = "none"
)
