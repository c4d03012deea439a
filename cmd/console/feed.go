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
	// maxShards is the maximum number of shards that a feed's page links to. The URL can name any other shard.
	maxShards = 50
	// searchTime bounds a search for a key, which reads the feed. A link continues the search.
	searchTime = 3 * time.Second
	maxFound   = 50
)

type feedView struct {
	feedState
	MayRead, MayPublish, MayAdminister bool
	OfULIDs                            bool // rows keep their positions, and heads are not numbers
	Shards                             []shardView
	Shard                              *int // the shard whose entries are shown; nil for the whole feed
	Entries                            []entryView
	Cursor                             rowfeed.Cursor
	Consumers                          []consumerView
	Publisher                          *rowfeed.LeaseStatus
	Search                             *searchView
	Entry                              *entryView // the entry that is shown in full
	Moved                              bool       // the requested entry is at another position now
}

// shardView is a shard of a feed with ULIDs, which is read shard by shard.
type shardView struct {
	Number  int
	Current bool
}

// searchView describes a search, and the cursor from which it continues.
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
		return nil, forbidden(access.Read, name) // the same answer whether or not the feed exists
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
		v.OfULIDs, v.MayPublish = true, false // rows keep their positions
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

// known tells whether a feed of the name exists, even if it cannot be described.
func (p feedPage) known(ctx context.Context, name string) bool {
	names, err := p.states.data.FeedNames(ctx)
	return err == nil && slices.Contains(names, name)
}

// chooseShard sets the shard whose entries are shown, if the feed is read shard by shard. It is the wanted shard, even
// if the feed does not list it, or the first shard if wanted is not a number.
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

// read reads the entries that the page shows: a single entry, those of a key, or the latest.
func (p feedPage) read(ctx context.Context, v *feedView, entry, position, key, after string, parts bool) error {
	source, err := p.catalog.Source(ctx, v.Name)
	if err != nil {
		return err
	}
	if v.Info, err = source.Info(ctx); err != nil { // the catalog may hide columns
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

// search reads the feed for at most searchTime, because a feed has no index for the text that a user types. It reads
// through the catalog, and so finds only rows that the identity may see.
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
