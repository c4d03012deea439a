package feedtype

// Capture is how changes of the source table are recorded.
type Capture string

const (
	// CaptureTrigger records changes by row-level triggers of the table.
	CaptureTrigger Capture = "trigger"
	// CaptureApp leaves the recording of changes to the writers. See Record of package rowfeed's Feed.
	CaptureApp Capture = "app"
	// CaptureColumn keeps each row's position in a column of the row. Writers set it to NULL in the statement of
	// their change.
	CaptureColumn Capture = "column"
	// CaptureNone records nothing. It is the capture of ModeBlocking, whose rows are only appended and hold their
	// positions.
	CaptureNone Capture = "none"
)
