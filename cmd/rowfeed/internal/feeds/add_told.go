package feeds

import (
	"context"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// keepsPositions tells whether the feed takes over positions of the table.
func (o *feedAddOptions) keepsPositions() bool {
	return (o.adopt || o.publishedElsewhere) && o.capture == string(feedtype.CaptureColumn)
}

// announce says on stderr, before anything is done, what rowfeed will change of a table that it adopts, and which
// numbers of readers it will refuse.
func (o *feedAddOptions) announce(ctx context.Context, a *cli.App, s *cli.Session, spec rowfeed.FeedSpec) error {
	plan, err := s.PreviewAdd(ctx, spec)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "rowfeed: %s\n", o.announcement(spec, plan))
	if text := o.numbers(plan); text != "" {
		fmt.Fprintf(a.Stderr, "rowfeed: %s\n", text)
	}
	return nil
}

// numbers says how readers of a feed that adopts positions send a number that they got from the former publisher. It is
// empty if they send the plain number.
func (o *feedAddOptions) numbers(plan *rowfeed.AddPlan) string {
	if plan.Generation == 1 || !o.keepsPositions() {
		return ""
	}
	return fmt.Sprintf("a feed named %s was dropped, so a plain number is refused as a cursor of that feed (409 "+
		"generation-changed): a reader with position 2 of the former publisher has to send GEN:2, where GEN is the "+
		"generation that `rowfeed feed list` shows afterwards, such as %d:2", o.name, plan.Generation)
}

// makesTrigger tells whether the feed's changes are captured by a trigger on the table.
func makesTrigger(spec rowfeed.FeedSpec) bool {
	return spec.Capture == feedtype.CaptureTrigger || spec.Capture == "" && spec.Mode == rowfeed.ModeSequence
}

// brokenByTriggers says what fails for the table's writers once the feed's trigger is there, and what to do. It is
// empty if nothing does.
func brokenByTriggers(d *dialect.Dialect, spec rowfeed.FeedSpec) string {
	if d.TriggersBreak == "" || !makesTrigger(spec) {
		return ""
	}
	instead := "--capture app or --capture column"
	if spec.Mode == rowfeed.ModeOutbox {
		instead = "--capture app"
	}
	return d.TriggersBreak + ". With " + instead + " rowfeed makes no trigger"
}

// warn writes a text on stderr, if there is one.
func warn(a *cli.App, text string) {
	if text != "" {
		fmt.Fprintf(a.Stderr, "rowfeed: %s\n", text)
	}
}

// announcement says what rowfeed will change of a table.
func (o *feedAddOptions) announcement(spec rowfeed.FeedSpec, plan *rowfeed.AddPlan) string {
	var made []string
	written := "nothing"
	for _, column := range plan.Added {
		made = append(made, "a column "+column)
	}
	switch {
	case spec.Capture == feedtype.CaptureColumn:
		made = append(made, "indexes on feed_sync_id")
	case makesTrigger(spec):
		made = append(made, "triggers")
	default:
		made = append(made, "nothing")
	}
	if o.fence {
		made = append(made, "two triggers")
	}
	if spec.Capture == feedtype.CaptureColumn && !o.publishedElsewhere {
		written = "feed_sync_id, where it is NULL"
		if spec.DataShards > 1 && spec.ShardColumn == "" {
			written += ", and the data shard of the key in column shard"
		}
	}
	return fmt.Sprintf("feed %s will add to table %s: %s. It will write into its rows: %s", spec.Name,
		spec.Table, strings.Join(made, ", "), written)
}

// preview prints what the command would do.
func (o *feedAddOptions) preview(ctx context.Context, a *cli.App, s *cli.Session, spec rowfeed.FeedSpec,
	warning string) error {
	plan, err := s.PreviewAdd(ctx, spec)
	if err != nil {
		return err
	}
	if plan.Exists {
		return a.PrintLine("%s: is a feed of table %s already, nothing changed", o.name, o.table)
	}
	lines := []string{o.announcement(spec, plan)}
	if warning != "" {
		lines = append(lines, warning)
	}
	switch {
	case plan.Continues:
		lines = append(lines, "cursors from before it was dropped stay valid"+lostDeletes(plan.From))
	case plan.Restart != "":
		lines = append(lines, "cursors from before it was dropped are refused: "+plan.Restart)
	}
	if text := o.numbers(plan); text != "" {
		lines = append(lines, text)
	}
	if o.adopt && !o.publishedElsewhere {
		lines = append(lines, fmt.Sprintf("rowfeed's positions will be above %d", plan.Head))
	}
	if len(plan.Consumers) > 0 {
		lines = append(lines, "consumers without a cursor will get one: "+strings.Join(plan.Consumers, ", "))
	}
	if len(plan.Others) > 0 {
		lines = append(lines, fmt.Sprintf("table %s has cursors of %s of feed %s%s", o.adoptCursors,
			cli.Plural(int64(len(plan.Consumers)), "consumer"), o.name, leftOut(plan.Others)))
	}
	for _, line := range append(lines, "nothing was changed") {
		if err := a.PrintLine("%s: %s", o.name, line); err != nil {
			return err
		}
	}
	return nil
}

// leftOut names the feeds whose rows in a table of cursors do not count.
func leftOut(others []string) string {
	if len(others) == 0 {
		return ""
	}
	return "; its rows of other feeds are left out: " + strings.Join(others, ", ") +
		". If they are this feed's, give it that name"
}

// lostDeletes limits a sentence on cursors that stay valid to those that have passed every delete before the drop.
func lostDeletes(from int64) string {
	if from == 0 {
		return ""
	}
	return fmt.Sprintf(", from position %d on; lower ones are refused, because their readers would miss deletes", from)
}

// adoption says on stderr what becomes of the cursors from before.
func (o *feedAddOptions) adoption(ctx context.Context, a *cli.App, f *rowfeed.Feed, complete bool) error {
	is, err := f.Admin().Adoption(ctx)
	if err != nil {
		return err
	}
	switch {
	case is.Continues:
		fmt.Fprintf(a.Stderr, "rowfeed: feed %s continues at position %d: cursors from before it was dropped "+
			"stay valid%s\n", o.name, is.Head, lostDeletes(is.From))
	case is.Restart != "":
		fmt.Fprintf(a.Stderr, "rowfeed: feed %s refuses cursors from before it was dropped: %s\n", o.name, is.Restart)
	}
	if o.adoptCursors != "" && !complete {
		fmt.Fprintf(a.Stderr, "rowfeed: table %s has cursors of %s of feed %s%s\n", o.adoptCursors,
			cli.Plural(int64(is.Consumers), "consumer"), o.name, leftOut(is.Others))
	}
	for _, text := range is.Unadopted {
		fmt.Fprintf(a.Stderr, "rowfeed: not taken over: %s\n", text)
	}
	return nil
}
