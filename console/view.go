package console

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

const (
	lookTimeout = 10 * time.Second
	// maxValue bounds the characters of a value on the page. The script has the same.
	maxValue = 160
	// maxShards bounds the shards that the page lists; any other is shown by its address.
	maxShards = 50
)

// view is what the page shows.
type view struct {
	Server   string
	Trouble  string // why there is no list, or no feed
	Feeds    []feedView
	Selected *feedView // nil: none
	Shards   []shardView
	Shard    *int // the one whose entries are shown; nil: the whole feed's
	Entries  []entryView
	Cursor   rowfeed.Cursor
}

// shardView is a shard of the selected feed, where each is a feed by itself.
type shardView struct {
	Number  int
	Current bool
}

type feedView struct {
	*rowfeed.Info // nil where the feed cannot be described
	FeedName      string
	Problems      []string
	Current       bool
}

type entryView struct {
	Position string
	Op       rowfeed.Op
	Key, Row []valueView
}

type valueView struct {
	Name, Value string
	Null        bool
}

// look gathers the page. With an error the view still has what could be found.
func (h *Handler) look(ctx context.Context, wanted, shard string) (view, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var v view
	names, err := h.catalog.Names(ctx)
	if err != nil {
		return v, err
	}
	var source rowfeed.Source
	for _, name := range names {
		s, info, err := h.describe(ctx, name)
		if errors.Is(err, rowfeed.UnknownFeed) {
			continue // dropped meanwhile
		}
		f := feedView{Info: info, FeedName: name, Problems: slices.Clone(h.cfg.Problems(name))}
		if err != nil {
			h.note(ctx, &f, err)
		}
		if f.Current = wanted == name || wanted == "" && v.Selected == nil; f.Current {
			v.Selected, source = &f, s
		}
		v.Feeds = append(v.Feeds, f)
	}
	if v.Selected == nil && wanted != "" {
		return v, &rowfeed.Error{Code: rowfeed.UnknownFeed, Object: "feed \"" + wanted + "\"", Cause: "there is no such feed"}
	}
	if v.Selected == nil || v.Selected.Info == nil {
		return v, nil
	}
	recent, err := latest(ctx, source, v.choose(shard))
	if err != nil {
		h.note(ctx, v.Selected, err)
	}
	v.Cursor = recent.Cursor
	if recent.Cursor == rowfeed.Beginning {
		v.Cursor = v.Selected.Head
	}
	for _, e := range slices.Backward(recent.Entries) {
		v.Entries = append(v.Entries, entryView{e.Position, e.Op, values(e.Key, rowfeed.Row{}), values(e.Row, e.Key)})
	}
	return v, nil
}

// choose says which part of the selected feed is shown: of one whose shards are feeds by
// themselves the shard that is asked for, be it one that is not listed, else the first.
func (v *view) choose(wanted string) rowfeed.Shards {
	ids := v.Selected.ShardIDs
	chosen, err := strconv.Atoi(wanted)
	if err != nil && len(ids) > 0 {
		chosen, err = ids[0], nil
	}
	if ids == nil || err != nil {
		return rowfeed.Shards{}
	}
	v.Shard = &chosen
	for _, id := range ids[:min(len(ids), maxShards)] {
		v.Shards = append(v.Shards, shardView{id, id == chosen})
	}
	return rowfeed.One(chosen)
}

func (h *Handler) describe(ctx context.Context, name string) (rowfeed.Source, *rowfeed.Info, error) {
	source, err := h.catalog.Source(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	info, err := source.Info(ctx)
	return source, info, err
}

// note puts an error among the feed's problems, unless one of them tells of it, and
// into the log what the page does not tell.
func (h *Handler) note(ctx context.Context, f *feedView, err error) {
	if feedhttp.Withheld(err) {
		h.cfg.Log.ErrorContext(ctx, "feed cannot be shown", "feed", f.FeedName, "error", err)
	}
	problem := feedhttp.ProblemOf(err, f.FeedName).String()
	if !slices.ContainsFunc(f.Problems, func(known string) bool { return strings.Contains(known, problem) }) {
		f.Problems = append(f.Problems, problem)
	}
}

// values lists a row's values as the script would show them, without those of key.
func values(row, key rowfeed.Row) []valueView {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(row.AppendJSON(nil), &members); err != nil {
		return []valueView{{Name: "?", Value: err.Error()}}
	}
	var all []valueView
	for i := range row.Len() {
		name := row.Column(i).Name
		if _, inKey := key.Get(name); inKey {
			continue
		}
		v := valueView{Name: name, Value: string(members[name]), Null: row.Value(i) == nil}
		var text string
		if strings.HasPrefix(v.Value, `"`) && json.Unmarshal(members[name], &text) == nil {
			v.Value = text // without quotes
		}
		v.Value = shorten(v.Value)
		all = append(all, v)
	}
	return all
}

func shorten(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxValue {
			return s[:i] + "…"
		}
	}
	return s
}
