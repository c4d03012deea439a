package bench

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
)

// Patience is how long a run may say nothing and still be taken for one at work: a beat can
// wait for the only write lock of SQLite, behind many writers.
const Patience = 20 * time.Second

// Leftover is a set of tables that a run has made.
type Leftover struct {
	Prefix string    `json:"prefix"`
	Owner  string    `json:"owner"`
	Began  time.Time `json:"began"`
}

// Cleaned is what Clean has found.
type Cleaned struct {
	// Removed were left by runs that were killed, or told to keep them.
	Removed []Leftover `json:"removed"`
	// AtWork are of runs that go on, and were left alone.
	AtWork []Leftover `json:"at_work"`
}

// Clean removes the sets of runs that have ended. Whether one has is seen by its beats: a run
// that has said nothing for the patience given is no more. waiting, where it is set, is told
// before it is waited for.
func Clean(
	ctx context.Context, url string, cfg rowfeed.Config, patience time.Duration, waiting func(sets int),
) (Cleaned, error) {
	c := Cleaned{Removed: []Leftover{}, AtWork: []Leftover{}}
	s, err := openSite(ctx, url, cfg.Schema, nil)
	if err != nil {
		return c, err
	}
	defer s.pool.Close()
	sets, err := s.leftovers(ctx)
	if err != nil || len(sets) == 0 {
		return c, err
	}
	if waiting != nil {
		waiting(len(sets))
	}
	if err := awaitBeats(ctx, sets, patience); err != nil {
		return c, err
	}
	for _, set := range sets {
		switch {
		case set.gone:
			continue
		case set.alive:
			c.AtWork = append(c.AtWork, set.Leftover)
			continue
		}
		if err := set.remove(ctx); err != nil {
			return c, err
		}
		c.Removed = append(c.Removed, set.Leftover)
	}
	return c, nil
}

// set is a leftover that is looked at.
type set struct {
	*site
	Leftover
	beats int64
	alive bool
	gone  bool // removed by its own run
}

// leftovers are the sets in the schema: each has a marker, of the shape that a run gives it.
func (s *site) leftovers(ctx context.Context) (sets []*set, err error) {
	all, err := s.things(ctx, stem)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		prefix := prefixPattern.FindString(t.name)
		if prefix == "" || t.name != prefix+marker {
			continue
		}
		one := *s
		one.prefix = prefix
		left := &set{site: &one, Leftover: Leftover{Prefix: prefix}}
		known, err := left.look(ctx)
		if err != nil {
			return nil, err
		}
		if known {
			sets = append(sets, left)
		}
	}
	slices.SortFunc(sets, func(a, b *set) int { return strings.Compare(a.Prefix, b.Prefix) })
	return sets, nil
}

// look reads the marker. Where there is none, or a table of that name has not its columns, it is
// no run's, or not any more.
func (s *set) look(ctx context.Context) (known bool, err error) {
	type row struct {
		owner        string
		began, beats int64
	}
	rows, err := dialect.QueryAll(ctx, dialect.On(s.pool), "SELECT owner, began_at, beats FROM "+
		s.quoted(marker), nil, func(rows dialect.Rows) (r row, err error) {
		return r, rows.Scan(&r.owner, &r.began, &r.beats)
	})
	switch {
	case s.d.Classify(err) == dialect.ClassUndefined:
		return false, nil
	case err != nil:
		return false, s.fail("read the table "+s.name(marker).String(), err)
	case len(rows) == 0: // killed at its first step, or just beginning
		s.beats = -1
		return true, nil
	}
	s.Owner, s.Began, s.beats = rows[0].owner, time.UnixMicro(rows[0].began).UTC(), rows[0].beats
	return true, nil
}

// awaitBeats looks at the sets until every one has been seen alive, or the patience is over.
func awaitBeats(ctx context.Context, sets []*set, patience time.Duration) error {
	for over := time.Now().Add(patience); ; {
		silent := false
		for _, s := range sets {
			if s.alive || s.gone {
				continue
			}
			before := s.beats
			known, err := s.look(ctx)
			if err != nil {
				return err
			}
			s.gone, s.alive = !known, known && s.beats != before
			silent = silent || !s.gone && !s.alive
		}
		if !silent || !time.Now().Before(over) {
			return nil
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
