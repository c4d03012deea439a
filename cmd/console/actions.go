package console

import (
	"context"
	"fmt"
	"net/url"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
)

// action is a change that an operator makes with a form.
type action struct {
	name  string // in the audit log
	right access.Right
	// needsAllRows is true if the result of the action shows whether a row exists. Such an action is refused if the
	// view of a token hides rows.
	needsAllRows bool
	// confirm returns the warning about what cannot be undone, or concerns many dead letters. It is nil, or returns "",
	// for an action that is done without a question.
	confirm func(context.Context, Actions, formValues) (string, error)
	button  string // of the page that asks
	// object names what the action changes, feed the feed that the right is needed for, and back the page that
	// follows the action.
	object, feed, back func(formValues) string
	check              func(formValues) error
	do                 func(context.Context, Actions, formValues) (done string, err error)
}

func consumerObject(f formValues) string { return f.id().String() }

func formFeed(f formValues) string { return f.feed }

func consumerPage(f formValues) string { return "consumers/" + url.PathEscape(f.consumer) }

// cursorAction returns an action that changes a consumer's cursors.
func cursorAction(verb, done string, change func(Actions, context.Context, rowfeed.ConsumerID) (int64, error)) action {
	return action{name: "consumer " + verb, right: access.Administer, object: consumerObject, feed: formFeed,
		back: consumerPage, check: needs("consumer", "feed"),
		do: func(ctx context.Context, d Actions, f formValues) (string, error) {
			n, err := change(d, ctx, f.id())
			return fmt.Sprintf("%s: %s %s.", f.id(), plural(n, "shard"), done), err
		}}
}

// actions has every action by the last part of its path.
var actions = func() map[string]action {
	seek := cursorAction("seek", "", nil)
	seek.button, seek.check = "Move the cursor", needs("consumer", "feed", "to")
	seek.confirm = func(ctx context.Context, d Actions, f formValues) (string, error) {
		m, err := d.PreviewSeek(ctx, f.id(), rowfeed.Cursor(f.to))
		return "The cursor is set to " + shorten(f.to) + ". " + m.Effect(), err
	}
	seek.do = func(ctx context.Context, d Actions, f formValues) (string, error) {
		n, err := d.SeekConsumer(ctx, f.id(), rowfeed.Cursor(f.to))
		return fmt.Sprintf("%s: %s set to %s.", f.id(), plural(n, "shard"), shorten(f.to)), err
	}
	reset := cursorAction("reset", "set back to the beginning", Actions.ResetConsumer)
	reset.button = "Set back to the beginning"
	reset.confirm = func(ctx context.Context, d Actions, f formValues) (string, error) {
		m, err := d.PreviewSeek(ctx, f.id(), rowfeed.Beginning)
		return "The consumer receives the whole feed again, with the current content of every row. " +
			"It receives no entries for rows that are already deleted. " + m.Effect(), err
	}
	letterAction := action{right: access.Administer, feed: formFeed, check: needs("consumer", "feed"),
		object: formValues.which, back: func(formValues) string { return "dead-letters" }}
	retry, drop := letterAction, letterAction
	retry.name, retry.button = "dead retry", "Retry"
	retry.confirm = func(ctx context.Context, d Actions, f formValues) (string, error) {
		if f.key != "" {
			return "", nil
		}
		n, err := d.CountDeadLetters(ctx, f.letters())
		return plural(n, "dead letter") + " to be retried. The consumer receives each key with its current row. " +
			"A key that fails again stays a dead letter.", err
	}
	retry.do = func(ctx context.Context, d Actions, f formValues) (string, error) {
		n, err := d.RetryDeadLetters(ctx, f.letters(), nil)
		return fmt.Sprintf("%s: the consumer retries %s within a second, or when it starts.",
			f.id(), plural(n, "dead letter")), err
	}
	drop.name, drop.button = "dead drop", "Drop"
	drop.confirm = func(ctx context.Context, d Actions, f formValues) (string, error) {
		n, err := d.CountDeadLetters(ctx, f.letters())
		return plural(n, "dead letter") + " to be dropped. The consumer never receives the changes that were set " +
			"aside. It receives a key again with its next change, or when the key is republished.", err
	}
	drop.do = func(ctx context.Context, d Actions, f formValues) (string, error) {
		n, err := d.DropDeadLetters(ctx, f.letters(), nil)
		return fmt.Sprintf("%s: %s dropped.", f.id(), plural(n, "dead letter")), err
	}
	return map[string]action{
		"pause":  cursorAction("pause", "paused", Actions.PauseConsumer),
		"resume": cursorAction("resume", "resumed", Actions.ResumeConsumer),
		"seek":   seek, "reset": reset, "retry": retry, "drop": drop,
		"republish": {name: "republish", right: access.Publish, needsAllRows: true, feed: formFeed,
			check:  needs("feed", "key"),
			object: func(f formValues) string { return fmt.Sprintf("feed %q", f.feed) },
			back:   func(f formValues) string { return "feeds/" + url.PathEscape(f.feed) },
			do: func(ctx context.Context, d Actions, f formValues) (string, error) {
				return fmt.Sprintf("The publisher gives key %s of feed %s a new position: "+
					"all readers receive it again.", shorten(f.key), f.feed), d.Republish(ctx, f.feed, f.key)
			}},
		"release": {name: "lease release", right: access.Administer, button: "Release",
			check:  needs("lease", "epoch"),
			object: func(f formValues) string { return fmt.Sprintf("lease %q", f.lease) },
			feed:   func(f formValues) string { return leaseFeed(f.lease) },
			back:   func(formValues) string { return "leases" },
			confirm: func(context.Context, Actions, formValues) (string, error) {
				return "Another process can acquire the lease at once. A holder that still runs stops when it next " +
					"renews the lease. Until then both processes may do the job, except for writes to the database. " +
					"The lease of a killed holder expires by itself.", nil
			},
			do: func(ctx context.Context, d Actions, f formValues) (string, error) {
				was, err := d.ReleaseLease(ctx, f.lease, f.epoch)
				if err == nil && was.State == rowfeed.LeaseFree {
					return "Lease " + f.lease + " was free already. Nothing changed.", nil
				}
				return "Lease " + f.lease + " is released.", err
			}},
	}
}()

// record returns the entry of the audit log.
func (a action) record(q *request, f formValues) admin.Act {
	in := admin.Act{Actor: q.who.Name, Act: a.name, Object: a.object(f)}
	switch {
	case f.to != "":
		in.Detail = "to " + f.to
	case a.name == "republish":
		in.Detail = "key " + f.key
	case f.epoch != 0:
		in.Detail = fmt.Sprintf("epoch %d", f.epoch)
	}
	return in
}
