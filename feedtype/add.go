package feedtype

// AddPlan is what adding a feed does, beyond what its spec says.
type AddPlan struct {
	// Exists says that the feed is complete already, with the same settings. Nothing would be changed.
	Exists bool
	// Head is the position above which the feed gives its own: 0, or that which it continues with Adopt. Consumers has
	// one text for each consumer of AdoptCursors, with its position.
	Head      int64
	Consumers []string
	// Continues says that cursors of a dropped feed of this name stay valid. Restart says why they are refused.
	Continues bool
	Restart   string
}
