package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
)

// act is something that an operator does by a form.
type act struct {
	name  string // of the act in the audit
	right access.Right
	// all says that it is for who sees all rows: how it ends tells which there are.
	all bool
	// confirm says what cannot be undone about it; nil where it can.
	confirm func(formValues) string
	button  string // what does it, on the page that asks
	// object is what it is done to, feed whose right is asked for, back where it leads.
	object, feed, back func(formValues) string
	check              func(formValues) error
	do                 func(context.Context, Actions, formValues) (done string, err error)
}

// formValues are what forms of actions have.
type formValues struct {
	consumer, feed, key, to, lease string
	shard                          *int
	epoch                          int64
	values                         url.Values // as they came, for the form that confirms
}

func (f formValues) id() rowfeed.ConsumerID {
	return rowfeed.ConsumerID{Consumer: f.consumer, Feed: f.feed, Shard: f.shard}
}

// letters names dead letters: one, or all of the consumer's.
func (f formValues) letters() json.RawMessage {
	if f.key == "" {
		return nil
	}
	return json.RawMessage(f.key)
}

func (f formValues) which() string {
	if f.key == "" {
		return "all dead letters of " + f.id().String()
	}
	return "the dead letter with key " + shorten(f.key) + " of " + f.id().String()
}

func parseForm(values url.Values) (formValues, error) {
	f := formValues{consumer: values.Get("consumer"), feed: values.Get("feed"), key: values.Get("key"),
		to: strings.TrimSpace(values.Get("to")), lease: values.Get("lease"), values: values}
	bad := func(name string) error {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: name, Cause: name + ": " +
			shorten(values.Get(name)) + " is no number", Next: "go back and take the form of the page"}
	}
	if text := values.Get("shard"); text != "" {
		shard, err := strconv.Atoi(text)
		if err != nil {
			return f, bad("shard")
		}
		f.shard = &shard
	}
	if text := values.Get("epoch"); text != "" {
		var err error
		if f.epoch, err = strconv.ParseInt(text, 10, 64); err != nil {
			return f, bad("epoch")
		}
	}
	return f, nil
}

// needs asks for fields that must be there.
func needs(names ...string) func(formValues) error {
	return func(f formValues) error {
		for _, name := range names {
			if strings.TrimSpace(f.values.Get(name)) == "" {
				return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: name, Cause: name + ": it is empty",
					Next: "go back and fill it in"}
			}
		}
		return nil
	}
}

func consumerObject(f formValues) string { return f.id().String() }
func formFeed(f formValues) string       { return f.feed }
func consumerPage(f formValues) string   { return "consumers/" + url.PathEscape(f.consumer) }

// moving makes an act that changes a consumer's cursors.
func moving(verb, done string, change func(Actions, context.Context, rowfeed.ConsumerID) (int64, error)) act {
	return act{name: "consumer " + verb, right: access.Administer, object: consumerObject, feed: formFeed,
		back: consumerPage, check: needs("consumer", "feed"),
		do: func(ctx context.Context, d Actions, f formValues) (string, error) {
			n, err := change(d, ctx, f.id())
			return fmt.Sprintf("%s: %s %s.", f.id(), plural(n, "shard"), done), err
		}}
}

// acts are all that there are, by the last part of their address.
var acts = func() map[string]act {
	seek := moving("seek", "", nil)
	seek.button, seek.check = "Move the cursor", needs("consumer", "feed", "to")
	seek.confirm = func(f formValues) string {
		return "Its cursor is set to " + shorten(f.to) +
			". Set back, it is handed entries again; what lies between its cursor and a later one it is never told."
	}
	seek.do = func(ctx context.Context, d Actions, f formValues) (string, error) {
		n, err := d.SeekConsumer(ctx, f.id(), rowfeed.Cursor(f.to))
		return fmt.Sprintf("%s: %s set to %s.", f.id(), plural(n, "shard"), shorten(f.to)), err
	}
	reset := moving("reset", "set back to the beginning", Actions.ResetConsumer)
	reset.button = "Set it back to the beginning"
	reset.confirm = func(formValues) string {
		return "It is handed the whole feed again, every row as it is then. " +
			"Rows that are gone are not named in such a pass."
	}
	aside := act{right: access.Administer, feed: formFeed, check: needs("consumer", "feed"), object: formValues.which,
		back: func(formValues) string { return "dead-letters" }}
	retry, drop := aside, aside
	retry.name = "dead retry"
	retry.do = func(ctx context.Context, d Actions, f formValues) (string, error) {
		n, err := d.RetryDeadLetters(ctx, f.id(), f.letters())
		return fmt.Sprintf("%s: %s to be tried again by the consumer, within a second or when it is started.",
			f.id(), plural(n, "dead letter")), err
	}
	drop.name, drop.button = "dead drop", "Give them up"
	drop.confirm = func(formValues) string {
		return "Their versions so far are never handed over. " +
			"The next version of such a key is again; republishing the key brings one."
	}
	drop.do = func(ctx context.Context, d Actions, f formValues) (string, error) {
		n, err := d.DropDeadLetters(ctx, f.id(), f.letters())
		return fmt.Sprintf("%s: %s given up.", f.id(), plural(n, "dead letter")), err
	}
	return map[string]act{
		"pause":  moving("pause", "paused", Actions.PauseConsumer),
		"resume": moving("resume", "resumed", Actions.ResumeConsumer),
		"seek":   seek, "reset": reset, "retry": retry, "drop": drop,
		"republish": {name: "republish", right: access.Publish, all: true, feed: formFeed, check: needs("feed", "key"),
			object: func(f formValues) string { return fmt.Sprintf("feed %q", f.feed) },
			back:   func(f formValues) string { return "feeds/" + url.PathEscape(f.feed) },
			do: func(ctx context.Context, d Actions, f formValues) (string, error) {
				return fmt.Sprintf("Key %s of feed %s gets a new position from its publisher: "+
					"readers receive it again.", shorten(f.key), f.feed), d.Republish(ctx, f.feed, f.key)
			}},
		"release": {name: "lease release", right: access.Administer, button: "Take it from its holder",
			check:  needs("lease", "epoch"),
			object: func(f formValues) string { return fmt.Sprintf("lease %q", f.lease) },
			feed:   func(f formValues) string { return leaseFeed(f.lease) },
			back:   func(formValues) string { return "leases" },
			confirm: func(formValues) string {
				return "A holder that still lives learns of it when it next renews, and stops; what it does outside " +
					"of the database until then is not fenced. A lease whose holder was killed frees itself in time."
			},
			do: func(ctx context.Context, d Actions, f formValues) (string, error) {
				was, err := d.ReleaseLease(ctx, f.lease, f.epoch)
				if err == nil && was.State == rowfeed.LeaseFree {
					return "Lease " + f.lease + " is free already; nothing changed.", nil
				}
				return "Lease " + f.lease + " is free for the next one.", err
			}},
	}
}()

// asked finds the act that a request is about, and whether it may be done.
func asked(q *request, name string, values url.Values) (act, formValues, error) {
	a, ok := acts[name]
	if !ok {
		return a, formValues{}, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "act",
			Cause: "act: there is none " + shorten(name), Next: "go back and take the form of the page"}
	}
	f, err := parseForm(values)
	if err == nil {
		err = a.check(f)
	}
	if err == nil && !q.who.May(a.right, a.feed(f)) {
		err = forbidden(a.right, a.feed(f))
	}
	if err == nil && a.all && !seesAll(q.who) {
		err = &rowfeed.Error{Code: rowfeed.Forbidden, Object: `feed "` + a.feed(f) + `"`,
			Cause: "your token sees a part of the rows, and this would tell of the others, too",
			Next:  "ask somebody whose token sees all"}
	}
	return a, f, err
}

type actPages struct {
	data     Actions
	refusals *refusals
}

// act does it, says so, and leads back; without what confirms it where it cannot be undone,
// it only asks.
func (p actPages) act(q *request) (*answer, error) {
	a, f, err := asked(q, q.rest, q.PostForm)
	if a.do == nil {
		return nil, err
	}
	if err != nil {
		if errors.Is(err, rowfeed.Forbidden) && p.refusals.note(q.who.Name) {
			refused := err
			err = p.data.Audited(q.Context(), a.record(q, f), func(context.Context) error { return refused })
		}
		return &answer{goTo: a.back(f)}, err
	}
	if a.confirm != nil && q.PostForm.Get("confirmed") != "yes" {
		return confirmation(q.rest, a, f), nil
	}
	var done string
	err = p.data.Audited(q.Context(), a.record(q, f), func(ctx context.Context) (err error) {
		done, err = a.do(ctx, p.data, f)
		return err
	})
	if err != nil {
		return &answer{goTo: a.back(f)}, err
	}
	leave(q.w, q.Request, done)
	return &answer{goTo: a.back(f)}, nil
}

// record is what the audit log has of it.
func (a act) record(q *request, f formValues) admin.Act {
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

type confirmView struct {
	Act, Object, Warning, Button, Back string
	Fields                             []field
}

type field struct{ Name, Value string }

// confirm asks before what cannot be undone. It changes nothing: a link leads to it.
func (p actPages) confirm(q *request) (*answer, error) {
	name := q.URL.Query().Get("act")
	a, f, err := asked(q, name, q.URL.Query())
	if err != nil {
		if a.back == nil {
			return nil, err
		}
		return &answer{goTo: a.back(f)}, err
	}
	if a.confirm == nil {
		return &answer{goTo: a.back(f)}, nil
	}
	return confirmation(name, a, f), nil
}

func confirmation(name string, a act, f formValues) *answer {
	v := confirmView{Act: name, Object: a.object(f), Warning: a.confirm(f), Button: a.button, Back: a.back(f)}
	for _, key := range []string{"consumer", "feed", "shard", "key", "to", "lease", "epoch"} {
		if value := f.values.Get(key); value != "" {
			v.Fields = append(v.Fields, field{key, value})
		}
	}
	return &answer{template: "confirm", title: a.button, content: v}
}
