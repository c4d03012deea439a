package console

import (
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
)

type blockedView struct {
	Feeds      []blockedFeed
	NotBlocked []string // names of feeds without blockers
	Hidden     bool     // there are feeds that the identity does not administer
}

type blockedFeed struct {
	Name     string
	Blockers []admin.Blocker
	Hidden   *admin.Unseen       // why Blockers may be incomplete
	Shards   []admin.ShardStatus // shards that a transaction holds or waits for
	Told     string
	Problem  string
}

type blockedPage struct {
	data   Feeds
	states states
}

// show lists the feeds that the identity administers. Statements of other sessions contain values of rows, so the right
// to read a feed is not enough.
func (p blockedPage) show(q *request) (*answer, error) {
	names, err := p.data.FeedNames(q.Context())
	if err != nil {
		return nil, err
	}
	var v blockedView
	for _, name := range names {
		if !q.who.May(access.Administer, name) {
			v.Hidden = true
			continue
		}
		found, err := p.data.Blocked(q.Context(), name)
		f := blockedFeed{Name: name, Blockers: found.Blockers, Hidden: found.Unseen, Told: found.Told}
		for _, s := range found.Shards {
			if s.Holder != nil || len(s.Waiting) > 0 {
				f.Shards = append(f.Shards, s)
			}
		}
		if err != nil {
			s := feedState{Name: name}
			p.states.addProblem(q.Context(), &s, err)
			f.Problem = s.Problems[0]
		}
		if len(f.Blockers)+len(f.Shards) == 0 && f.Problem == "" && f.Hidden == nil && f.Told != admin.HoldersNone {
			v.NotBlocked = append(v.NotBlocked, name)
			continue
		}
		v.Feeds = append(v.Feeds, f)
	}
	return &answer{template: "blocked", title: "Blocked feeds", nav: "blocked", content: v}, nil
}
