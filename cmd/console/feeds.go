package console

import (
	"strings"

	"github.com/rowfeed/rowfeed"
)

type feedsView struct {
	Feeds     []feedRow
	Hidden    bool // there are feeds that the identity may not see
	Waiting   int64
	ManyWait  bool
	Consumers int
}

type feedRow struct {
	feedState
	Consumers []consumerView
	Behind    *consumerView // the consumer that is furthest behind
}

type feedsPage struct {
	states    states
	consumers consumerPages
}

func (p feedsPage) show(q *request) (*answer, error) {
	if name := q.URL.Query().Get("feed"); name != "" { // an older URL of a feed's page
		return &answer{redirect: "feeds/" + strings.ReplaceAll(name, "/", "")}, nil
	}
	a := &answer{template: "feeds", title: "Feeds", nav: "feeds"}
	states, hidden, err := p.states.all(q.Context(), q.who)
	if err != nil {
		return nil, err
	}
	groups, err := p.consumers.groups(q.Context(), q.who, rowfeed.ConsumerID{})
	if err != nil {
		return nil, err
	}
	v := feedsView{Hidden: hidden, Consumers: len(groups)}
	for _, s := range states {
		row := feedRow{feedState: s}
		for _, g := range groups {
			if g.Feed != s.Name {
				continue
			}
			if row.Consumers = append(row.Consumers, g); row.Behind == nil || g.Seconds > row.Behind.Seconds {
				row.Behind = &g
			}
		}
		v.Waiting += s.Waits.Waiting
		v.ManyWait = v.ManyWait || s.ManyWait
		v.Feeds = append(v.Feeds, row)
	}
	a.content = v
	return a, nil
}
