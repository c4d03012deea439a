package rowfeed

import (
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

func (sequenced) defaults(s *FeedSpec) {
	if s.Capture == "" {
		s.Capture = dialect.CaptureTrigger
	}
	if s.Tombstones == 0 {
		s.Tombstones = DefaultTombstones
	}
}

func (blocking) defaults(s *FeedSpec) {
	if s.Capture == "" {
		s.Capture = dialect.CaptureNone
	}
}

func (outbox) defaults(s *FeedSpec) {
	if s.Capture == "" {
		s.Capture = dialect.CaptureApp
	}
}

func (sequenced) validate(s FeedSpec) error {
	switch {
	case s.PositionColumn != "":
		return feedtype.Invalid("position-column", "only mode blocking has positions in a column of your own")
	case s.TimeColumn != "":
		return feedtype.Invalid("time-column", "only mode outbox gives rows the times of before the feed")
	case s.Capture != dialect.CaptureTrigger && s.Capture != dialect.CaptureApp && s.Capture != dialect.CaptureColumn:
		return feedtype.Invalid("capture", "%q is not one of: trigger, app, column", s.Capture)
	case s.Adopt && s.Capture != dialect.CaptureColumn:
		return feedtype.Invalid("adopt", "only capture column has positions to adopt")
	case s.AdoptSequence != "" && !s.Adopt:
		return feedtype.Invalid("adopt-sequence", "it is for feeds that adopt their positions")
	case s.AdoptCursors != "" && !s.Adopt:
		return feedtype.Invalid("adopt-cursors", "it is for feeds that adopt their positions")
	case s.DataShards < 1 || s.DataShards > feedtype.MaxDataShards:
		return feedtype.Invalid("data-shards", "%d must be between 1 and %d", s.DataShards, feedtype.MaxDataShards)
	case s.Tombstones < time.Second:
		return feedtype.Invalid("tombstones", "%s is less than a second", s.Tombstones)
	}
	return nil
}

func (blocking) validate(s FeedSpec) error {
	switch {
	case s.TimeColumn != "":
		return feedtype.Invalid("time-column", "with mode blocking rows hold their times in their ULIDs: leave it out")
	case s.PositionColumn == "":
		return feedtype.Invalid("position-column", "name the column that holds a row's ULID")
	case s.ShardColumn == "":
		return feedtype.Invalid("shard-column", "name the integer column that says which shard a row is in")
	case s.Capture != dialect.CaptureNone:
		return feedtype.Invalid("capture", "with ULIDs nothing is captured: leave it out")
	}
	return s.appendedTo()
}

func (outbox) validate(s FeedSpec) error {
	switch {
	case s.PositionColumn != "":
		return feedtype.Invalid("position-column", "with mode outbox a row's ULID is in a table of rowfeed's own: leave it out")
	case s.Capture != dialect.CaptureApp && s.Capture != dialect.CaptureTrigger:
		return feedtype.Invalid("capture", "with mode outbox %q is not one of: app, trigger", s.Capture)
	}
	return s.appendedTo()
}

// appendedTo refuses what is of no use to a feed of a table that is only appended to.
func (s FeedSpec) appendedTo() error {
	switch {
	case s.Tombstones != 0:
		return feedtype.Invalid("tombstones", "with ULIDs rows are only appended, and no deletes are kept: leave it out")
	case s.DataShards != 1:
		return feedtype.Invalid("data-shards", "with ULIDs any integer is a shard: leave it out")
	case s.Adopt || s.AdoptSequence != "" || s.AdoptCursors != "":
		return feedtype.Invalid("adopt", "with ULIDs shards begin above the ULIDs that are there anyway: leave it out")
	case s.AcceptTriggers || s.AcceptUntriggered:
		return feedtype.Invalid("accept-triggers", "with ULIDs rows are only appended, which triggers see: leave it out")
	}
	return nil
}

func (sequenced) keeps(r feedtype.Retention) error { return noRetention(r) }
func (blocking) keeps(r feedtype.Retention) error  { return noRetention(r) }
func (outbox) keeps(r feedtype.Retention) error    { return validRetention(r) }
