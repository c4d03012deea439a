package console

import (
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
)

// maxLetters is the maximum number of dead letters that the page lists. All are counted.
const maxLetters = 200

type lettersView struct {
	Letters        []letterView
	Total          int
	Groups         []letterGroup
	Consumer, Feed string // the filter of the page; "" for all
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
	v := lettersView{Consumer: query.Get("consumer"), Feed: query.Get("feed")}
	all, err := p.data.DeadLetters(q.Context(), rowfeed.ConsumerID{Consumer: v.Consumer, Feed: v.Feed}, nil)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if !q.who.May(access.Administer, l.Feed) {
			continue
		}
		if v.Total++; v.Total <= maxLetters {
			v.Letters = append(v.Letters, letterView{l, string(l.Key)})
		}
		if n := len(v.Groups); n == 0 || v.Groups[n-1].Consumer != l.Consumer || v.Groups[n-1].Feed != l.Feed {
			v.Groups = append(v.Groups, letterGroup{l.Consumer, l.Feed, 0})
		}
		v.Groups[len(v.Groups)-1].Letters++
	}
	return &answer{template: "letters", title: "Dead letters", nav: "dead-letters", content: v}, nil
}
