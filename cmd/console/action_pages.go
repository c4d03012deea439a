package console

import (
	"context"
	"errors"
	"net/url"

	"github.com/rowfeed/rowfeed"
)

// parseAction returns the action of a request with its values. It checks the values and the rights of the identity.
func parseAction(q *request, name string, values url.Values) (action, formValues, error) {
	a, ok := actions[name]
	if !ok {
		return a, formValues{}, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "act",
			Cause: "act: there is no action " + shorten(name), Next: "go back and use the form of the page"}
	}
	f, err := parseForm(values)
	if err == nil {
		err = a.check(f)
	}
	if err == nil && !q.who.May(a.right, a.feed(f)) {
		err = forbidden(a.right, a.feed(f))
	}
	if err == nil && a.needsAllRows && !seesAll(q.who) {
		err = &rowfeed.Error{Code: rowfeed.Forbidden, Object: `feed "` + a.feed(f) + `"`,
			Cause: "your token hides some rows, and the result of this action would show whether a hidden row exists",
			Next:  "use a token that sees all rows"}
	}
	return a, f, err
}

type actionPages struct {
	data     Actions
	refusals *refusals
}

// act runs an action, records it in the audit log and redirects to the page that the form is on. For an action that
// cannot be undone, a form without a confirmation is answered with the page that asks for it.
func (p actionPages) act(q *request) (*answer, error) {
	a, f, err := parseAction(q, q.param, q.PostForm)
	if a.do == nil {
		return nil, err
	}
	if err != nil {
		if errors.Is(err, rowfeed.Forbidden) && p.refusals.allow(q.who.Name) {
			refused := err
			err = p.data.Audited(q.Context(), a.record(q, f), func(context.Context) error { return refused })
		}
		return &answer{redirect: a.back(f)}, err
	}
	if q.PostForm.Get("confirmed") != "yes" {
		if asks, err := p.confirmation(q.Context(), q.param, a, f); asks != nil || err != nil {
			return asks, err
		}
	}
	var done string
	err = p.data.Audited(q.Context(), a.record(q, f), func(ctx context.Context) (err error) {
		done, err = a.do(ctx, p.data, f)
		return err
	})
	if err != nil {
		return &answer{redirect: a.back(f)}, err
	}
	setMessage(q.w, q.Request, done)
	return &answer{redirect: a.back(f)}, nil
}

type confirmView struct {
	Act, Object, Warning, Button, Back string
	Fields                             []field
}

type field struct{ Name, Value string }

// confirm shows the page that asks before an action that cannot be undone. A link leads to it: it changes nothing.
func (p actionPages) confirm(q *request) (*answer, error) {
	name := q.URL.Query().Get("act")
	a, f, err := parseAction(q, name, q.URL.Query())
	if err != nil {
		if a.back == nil {
			return nil, err
		}
		return &answer{redirect: a.back(f)}, err
	}
	asks, err := p.confirmation(q.Context(), name, a, f)
	if asks == nil {
		return &answer{redirect: a.back(f)}, err
	}
	return asks, nil
}

// confirmation returns the page that asks, or nil for an action that is done without a question.
func (p actionPages) confirmation(ctx context.Context, name string, a action, f formValues) (*answer, error) {
	if a.confirm == nil {
		return nil, nil
	}
	warning, err := a.confirm(ctx, p.data, f)
	if warning == "" || err != nil {
		return nil, err
	}
	v := confirmView{Act: name, Object: a.object(f), Warning: warning, Button: a.button, Back: a.back(f)}
	for _, key := range []string{"consumer", "feed", "shard", "key", "error", "group", "to", "lease", "epoch"} {
		if value := f.values.Get(key); value != "" {
			v.Fields = append(v.Fields, field{key, value})
		}
	}
	return &answer{template: "confirm", title: a.button, content: v}, nil
}
