package console

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/feedhttp"
)

const (
	// maxShards bounds the shards that a feed's page lists; any other is shown by its address.
	maxShards = 50
	// searchTime bounds a search for a key, which reads the feed; it can be gone on with.
	searchTime = 3 * time.Second
	maxFound   = 50
)

type feedView struct {
	feedState
	MayRead, MayPublish, MayAdminister bool
	OfULIDs                            bool // its rows have no other positions, and heads are no numbers
	Shards                             []shardView
	Shard                              *int // the one whose entries are shown; nil: the whole feed's
	Entries                            []entryView
	Cursor                             rowfeed.Cursor
	Consumers                          []consumerView
	Publisher                          *rowfeed.LeaseStatus
	Search                             *searchView
	Entry                              *entryView // the only one that is shown
	Moved                              bool       // the one that was asked for is at another position now
}

// shardView is a shard of the feed, where each is a feed by itself.
type shardView struct {
	Number  int
	Current bool
}

// searchView is what a search has found, and whence it goes on.
type searchView struct {
	Key   string
	Parts bool
	Read  int
	After rowfeed.Cursor
	More  bool
}

type feedPage struct {
	catalog   feedhttp.Catalog
	data      Lists
	states    states
	consumers consumerPages
}

func (p feedPage) show(q *request) (*answer, error) {
	name, query := q.param, q.URL.Query()
	if !maySee(q.who, name) {
		return nil, forbidden(access.Read, name) // the same whether there is one
	}
	v := feedView{MayRead: q.who.May(access.Read, name), MayPublish: q.who.May(access.Publish, name) &&
		seesAll(q.who), MayAdminister: q.who.May(access.Administer, name)}
	state, err := p.states.of(q.Context(), name)
	if v.feedState = state; state.Info == nil && err != nil && !p.known(q.Context(), name) {
		return nil, err
	}
	if err != nil {
		p.states.addProblem(q.Context(), &v.feedState, err)
	}
	a := &answer{template: "feed", title: name, nav: "feeds"}
	if v.Info != nil && v.Info.ShardIDs != nil {
		v.OfULIDs, v.MayPublish = true, false // its rows keep their positions
	}
	if v.Info != nil && v.MayRead {
		v.chooseShard(query.Get("shard"))
		if err := p.read(q.Context(), &v, query.Get("entry"), query.Get("position"), query.Get("key"),
			query.Get("after"), query.Get("parts") != ""); err != nil {
			p.states.addProblem(q.Context(), &v.feedState, err)
		}
	}
	if v.Entry != nil || query.Has("entry") {
		a.template = "entry"
	}
	if v.Consumers, err = p.consumers.groups(q.Context(), q.who, rowfeed.ConsumerID{Feed: name}); err != nil {
		p.states.addProblem(q.Context(), &v.feedState, err)
	}
	if leases, err := p.data.CurrentLeases(q.Context()); err == nil {
		if i := slices.IndexFunc(leases, func(l *rowfeed.LeaseStatus) bool {
			return l.Name == admin.PublisherLease(name) && l.State == rowfeed.LeaseHeld
		}); i >= 0 {
			v.Publisher = leases[i]
		}
	}
	a.content = v
	return a, nil
}

// known tells whether there is a feed of the name, however it stands.
func (p feedPage) known(ctx context.Context, name string) bool {
	names, err := p.states.data.FeedNames(ctx)
	return err == nil && slices.Contains(names, name)
}

// chooseShard says which part of the feed is shown: of one whose shards are feeds by
// themselves the shard that is asked for, be it one that is not listed, else the first.
func (v *feedView) chooseShard(wanted string) {
	ids := v.Info.ShardIDs
	chosen, err := strconv.Atoi(wanted)
	if err != nil && len(ids) > 0 {
		chosen, err = ids[0], nil
	}
	if ids == nil || err != nil {
		return
	}
	v.Shard = &chosen
	for _, id := range ids[:min(len(ids), maxShards)] {
		v.Shards = append(v.Shards, shardView{id, id == chosen})
	}
}

func (v *feedView) shards() rowfeed.Shards {
	if v.Shard == nil {
		return rowfeed.Shards{}
	}
	return rowfeed.One(*v.Shard)
}

// read reads the rows that the page shows: one entry, those of a key, or the latest.
func (p feedPage) read(ctx context.Context, v *feedView, entry, position, key, after string, parts bool) error {
	source, err := p.catalog.Source(ctx, v.Name)
	if err != nil {
		return err
	}
	if v.Info, err = source.Info(ctx); err != nil { // the catalog may show fewer columns, or none
		return err
	}
	switch {
	case entry != "" || position != "":
		page, err := source.Fetch(ctx, rowfeed.Request{After: rowfeed.Cursor(entry), Limit: 1, Shards: v.shards()})
		if err == nil && len(page.Entries) > 0 && (position == "" || page.Entries[0].Position == position) {
			found := viewOf(located{page.Entries[0], rowfeed.Cursor(entry)})
			v.Entry = &found
		}
		v.Moved = v.Entry == nil
		return err
	case key != "":
		v.Search = &searchView{Key: key, Parts: parts, After: rowfeed.Cursor(after)}
		return v.search(ctx, source)
	}
	recent, cursor, err := latest(ctx, source, v.shards())
	if v.Cursor = cursor; cursor == rowfeed.Beginning {
		v.Cursor = v.Info.Head
	}
	for _, e := range slices.Backward(recent) {
		v.Entries = append(v.Entries, viewOf(e))
	}
	return err
}

// search reads the feed for a key, as far as it comes in its time. A feed has no index for
// what people type; read through the catalog it finds no row that may not be seen.
func (v *feedView) search(ctx context.Context, source rowfeed.Source) error {
	s, begun := v.Search, time.Now()
	for {
		page, err := source.Fetch(ctx, rowfeed.Request{After: s.After, Limit: scanLimit, Shards: v.shards()})
		if err != nil {
			return err
		}
		all, err := locate(page, s.After)
		if err != nil {
			return err
		}
		for _, e := range all {
			if isKey(e.Entry, s.Key, s.Parts) {
				v.Entries = append(v.Entries, viewOf(e))
			}
		}
		s.Read += len(all)
		s.After, s.More = page.Cursor, page.More
		if !s.More || len(v.Entries) >= maxFound || !s.Parts && len(v.Entries) > 0 || time.Since(begun) > searchTime {
			return nil
		}
	}
}
