package console

import (
	"cmp"
	"context"
	"html/template"
	"net/url"
	"slices"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	// maxLetters is the maximum number of dead letters on a page.
	maxLetters = 50
	// maxGroups is the maximum number of groups that the page counts. It lists the largest ones.
	maxGroups, listedGroups = 1000, 20
)

type lettersView struct {
	Letters []letterView
	Groups  []letterGroup
	// Consumer, Feed, Error, Group and Key are the filter of the page, as in rowfeed.LetterQuery.
	Consumer, Feed, Error, Group, Key string
	Feeds                             []string // to choose from, for a token that may not see all
	Matching                          int64    // letters on all pages
	Next                              string
	Later                             bool // this is not the first page
}

// Filtered tells whether the page shows a selection of what the token may see.
func (v lettersView) Filtered() bool {
	return v.Consumer+v.Error+v.Group+v.Key != "" || v.Feed != "" && v.Feeds == nil
}

// Query returns the filter as the query of a URL.
func (v lettersView) Query(more ...string) template.URL {
	return letterQuery(append(more, "consumer", v.Consumer, "feed", v.Feed, "error", v.Error, "group", v.Group,
		"key", v.Key)...)
}

func letterQuery(pairs ...string) template.URL {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return template.URL(values.Encode())
}

type letterView struct {
	rowfeed.DeadLetter
	KeyText string
	Row     []valueView // the row that a retry delivers; nil if there is none, or if it is hidden
}

// letterGroup has the dead letters of a consumer that have failed alike.
type letterGroup struct{ feedtype.LetterGroup }

// Query selects the letters of the group in a URL.
func (g letterGroup) Query(more ...string) template.URL {
	return letterQuery(append(more, "consumer", g.Consumer, "feed", g.Feed, "group", g.Error)...)
}

type lettersPage struct{ data Lists }

func (p lettersPage) show(q *request) (*answer, error) {
	query := q.URL.Query()
	v := lettersView{Consumer: query.Get("consumer"), Feed: query.Get("feed"), Error: query.Get("error"),
		Group: query.Get("group"), Key: query.Get("key"), Later: query.Get("after") != ""}
	asked := rowfeed.LetterQuery{ConsumerID: rowfeed.ConsumerID{Consumer: v.Consumer, Feed: v.Feed}, Error: v.Error,
		Group: v.Group, Key: v.Key, After: query.Get("after"), Limit: maxLetters}
	if !q.who.May(access.Administer, access.EveryFeed) {
		// One feed a page: the selection is the database's, so that pages and numbers have only what may be seen.
		v.Feeds = administered(q.who)
		if asked.Feed == "" && len(v.Feeds) > 0 {
			v.Feed, asked.Feed = v.Feeds[0], v.Feeds[0]
		}
		if !slices.Contains(v.Feeds, asked.Feed) {
			return nil, forbidden(access.Administer, cmp.Or(asked.Feed, access.EveryFeed))
		}
	}
	page, err := p.data.DeadLetters(q.Context(), asked)
	if err != nil {
		return nil, err
	}
	v.Next = page.Next
	for _, l := range page.Letters {
		v.Letters = append(v.Letters, letterView{l, string(l.Key), p.row(q.Context(), q.who, l)})
	}
	asked.After, asked.Limit = "", maxGroups
	groups, err := p.data.GroupDeadLetters(q.Context(), asked)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		v.Groups, v.Matching = append(v.Groups, letterGroup{g}), v.Matching+g.Letters
	}
	v.Groups = v.Groups[:min(len(v.Groups), listedGroups)]
	return &answer{template: "letters", title: "Dead letters", nav: "dead-letters", content: v}, nil
}

// row returns the row that a retry of the letter delivers. A token sees it only if it may read the feed without a view.
func (p lettersPage) row(ctx context.Context, who access.Identity, l rowfeed.DeadLetter) []valueView {
	if !who.May(access.Read, l.Feed) || !who.View.IsZero() {
		return nil
	}
	e, err := p.data.LetterRow(ctx, l)
	if err != nil || e == nil { // the feed may be in another database
		return nil
	}
	return values(e.Row, e.Key)
}
