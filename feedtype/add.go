package feedtype

// AddPlan is what adding a feed does, beyond what its spec says.
type AddPlan struct {
	// Exists says that the feed is complete already, with the same settings. Nothing would be changed.
	Exists bool
	// Added are the columns that the table gets. The feed has them until it is dropped.
	Added []string
	// Head is the highest position that exists before the feed is added. It is 0 without Adopt. The feed gives
	// positions above Head. Consumers has one text for each consumer of AdoptCursors, with its position.
	Head      int64
	Consumers []string
	// Others has one text for each other feed of which AdoptCursors has rows, which are left out, with their number.
	Others []string
	// Continues says that cursors of a dropped feed of this name stay valid, from position From on: readers at lower
	// ones would miss deletes. Restart says why all are refused.
	Continues bool
	From      int64
	Restart   string
	// Generation is that of the feed if it were added now. A feed that was dropped before and does not continue gets
	// another one in each second.
	Generation int64
}
