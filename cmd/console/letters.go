package console

import (
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
)

// maxLetters is the maximum number of dead letters on a page.
const maxLetters = 200

type lettersView struct {
	Letters        []letterView
	Groups         []letterGroup
	Consumer, Feed string // the filter of the page, as are Key and Error; "" for all
	Key, Error     string
	Next           string // rowfeed.LetterQuery.After of the next page; "" if this is the last page
}

type letterView struct {
	rowfeed.DeadLetter
	KeyText string
}

// letterGroup is a consumer of a feed that has dead letters.
type letterGroup struct {
	Consumer, Feed string
	Letters        int64
}

type lettersPage struct{ data Lists }

func (p lettersPage) show(q *request) (*answer, error) {
	query := q.URL.Query()
	v := lettersView{Consumer: query.Get("consumer"), Feed: query.Get("feed"), Key: query.Get("key"),
		Error: query.Get("error")}
	id := rowfeed.ConsumerID{Consumer: v.Consumer, Feed: v.Feed}
	page, err := p.data.DeadLetters(q.Context(), rowfeed.LetterQuery{ConsumerID: id, Key: v.Key, Error: v.Error,
		After: query.Get("after"), Limit: maxLetters})
	if err != nil {
		return nil, err
	}
	v.Next = page.Next
	for _, l := range page.Letters {
		if q.who.May(access.Administer, l.Feed) {
			v.Letters = append(v.Letters, letterView{l, string(l.Key)})
		}
	}
	shards, err := p.data.Consumers(q.Context(), id) // each counts its letters, so that not all need to be read
	if err != nil {
		return nil, err
	}
	for _, s := range shards {
		if s.DeadLetters == 0 || !q.who.May(access.Administer, s.Feed) {
			continue
		}
		if n := len(v.Groups); n == 0 || v.Groups[n-1].Consumer != s.Consumer || v.Groups[n-1].Feed != s.Feed {
			v.Groups = append(v.Groups, letterGroup{s.Consumer, s.Feed, 0})
		}
		v.Groups[len(v.Groups)-1].Letters += s.DeadLetters
	}
	return &answer{template: "letters", title: "Dead letters", nav: "dead-letters", content: v}, nil
}
