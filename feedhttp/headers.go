package feedhttp

const (
	// revalidated is the Cache-Control of answers that a client may keep, but must revalidate each time, because rows
	// change under the same positions. unkept is that of all other answers.
	revalidated = "private, no-cache"
	unkept      = "no-store"
	// vary lists the headers that every answer depends on: its format, and the client. varyCoded is for answers that
	// may be compressed.
	vary      = "Accept, Authorization, Cookie"
	varyCoded = "Accept, Accept-Encoding, Authorization, Cookie"
	// columnsHeader identifies the columns that a page, or a feed's description, was made with. A Client compares it
	// with the description that it knows. Otherwise it might decode a column whose type has changed by its old type,
	// and the entries alone do not always show the change.
	columnsHeader = "Rowfeed-Columns"
	// watermarkHeader has the watermark of a page's shard, see [rowfeed.Page].
	watermarkHeader = "Rowfeed-Standing"
	// cursorHeader and moreHeader have the values for which a batch of events has no field.
	cursorHeader = "Rowfeed-Cursor"
	moreHeader   = "Rowfeed-More"
)
